# SPDX-License-Identifier: Apache-2.0
"""Plans made by hand, as the mappings that docs/PROTOCOL.md describes; a test bends what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Mapping = dict[str, Any]
MILLISECOND_NS = 1_000_000
RELIABLE: Mapping = {"reliability": "reliable", "history": "keep_last", "depth": 64}


def reader(topic: str, streams: list[int], *, payload_bytes: int = 64, **more: Any) -> Mapping:
    return {
        "context": 0,
        "topic": topic,
        "type": "bytes",
        "payload_bytes": payload_bytes,
        "streams": streams,
        "capacity": 200_000,
        "qos": dict(RELIABLE),
        **more,
    }


def writer(topic: str, stream: int, *, payload_bytes: int = 64, **more: Any) -> Mapping:
    return {
        "context": 0,
        "topic": topic,
        "type": "bytes",
        "payload_bytes": payload_bytes,
        "stream": stream,
        "subscribers": 1,
        "capacity": 200_000,
        "qos": dict(RELIABLE),
        **more,
    }


def timer(period_ns: int, *, readers: tuple[int, ...] = (), writers: tuple[int, ...] = (0,)) -> Mapping:
    return {
        "trigger": "timer",
        "period_ns": period_ns,
        "offset_ns": 0,
        "readers": list(readers),
        "work_ns": 0,
        "writers": list(writers),
    }


def any_message(*, writers: tuple[int, ...] = (), **more: Any) -> Mapping:
    return {"trigger": "any", "readers": [0], "work_ns": 0, "writers": list(writers), **more}


def closed_loop(messages_max: int = 0, timeout_ns: int = 5_000 * MILLISECOND_NS) -> Mapping:
    return {
        "trigger": "closed_loop",
        "readers": [0],
        "work_ns": 0,
        "writers": [0],
        "timeout_ns": timeout_ns,
        "messages_max": messages_max,
    }


def node(
    name: str, index: int, readers: list[Mapping], writers: list[Mapping], rules: list[Mapping], dispatch: str
) -> Mapping:
    return {
        "name": name,
        "index": index,
        "dispatch": dispatch,
        "cpus": [],
        "readers": readers,
        "writers": writers,
        "rules": rules,
    }


def plan(library: Path | str, directory: Path | str, nodes: list[Mapping], **phases: int) -> Mapping:
    """A standalone plan for one worker. `phases`: discovery_timeout_ns, warmup_ns, measure_ns, drain_ns."""
    return {
        "protocol": 1,
        "cell": "test",
        "trial": 0,
        "standalone": True,
        "worker": {"index": 0, "name": "worker"},
        "phases": {
            "discovery_timeout_ns": 20_000 * MILLISECOND_NS,
            "warmup_ns": 20 * MILLISECOND_NS,
            "measure_ns": 150 * MILLISECOND_NS,
            "drain_ns": 50 * MILLISECOND_NS,
            **phases,
        },
        "scheduling": {"policy": "other", "priority": 0, "cpus": [], "lock_memory": False},
        "runtime_directory": str(directory),
        "touch": "write+read",
        "adapters": [
            {
                "name": Path(library).stem.removeprefix("liblagometer_"),
                "library": str(library),
                "profile": "default",
                "options": {},
                "environment": {},
                "network": {},
            }
        ],
        "contexts": [{"adapter": 0, "domain": 0, "name": "context"}],
        "nodes": nodes,
    }


def apart(library: Path | str, directory: Path | str, nodes: list[Mapping], **phases: int) -> list[Mapping]:
    """A plan for each node, whose workers wait for a common `go`. `phases` as of `plan`."""
    plans = []
    for index, each in enumerate(nodes):
        one = plan(library, directory, [each], **phases)
        one["standalone"] = False
        one["worker"] = {"index": index, "name": each["name"]}
        one["contexts"][0]["name"] = each["name"]
        plans.append(one)
    return plans


def pipeline(dispatch: str, *, period_ns: int = 5 * MILLISECOND_NS, **endpoint: Any) -> list[Mapping]:
    """source → relay → sink; stream n is written on topic tn."""
    return [
        node("source", 0, [], [writer("t0", 0, **endpoint)], [timer(period_ns)], dispatch),
        node(
            "relay",
            1,
            [reader("t0", [0], **endpoint)],
            [writer("t1", 1, **endpoint)],
            [any_message(writers=(0,))],
            dispatch,
        ),
        node("sink", 2, [reader("t1", [1], **endpoint)], [], [any_message()], dispatch),
    ]


def pingpong(dispatch: str, messages_max: int = 0, **endpoint: Any) -> list[Mapping]:
    """ping sends on topic ping (stream 0), pong answers on topic pong (stream 1)."""
    return [
        node(
            "ping",
            0,
            [reader("pong", [1], **endpoint)],
            [writer("ping", 0, **endpoint)],
            [closed_loop(messages_max)],
            dispatch,
        ),
        node(
            "pong",
            1,
            [reader("ping", [0], **endpoint)],
            [writer("pong", 1, **endpoint)],
            [any_message(writers=(0,), echo=True)],
            dispatch,
        ),
    ]
