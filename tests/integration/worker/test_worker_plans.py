# SPDX-License-Identifier: Apache-2.0
"""What both workers refuse, with the same words and the same exit code, and that neither refuses more.

The bounds are looked up in the models of the plan, so one that is added there is tested here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from both_workers import Kind
from needs import ROOT
from plan_parts import MILLISECOND_NS, Mapping, any_message, closed_loop, node, plan, reader, timer, writer

from lagometer.run.worker.plan_bounds import Bound, bounds, models

AT_ONCE = 2
# Where each model is in the plan below.
PLACES = {
    "Plan": "",
    "Worker": "worker",
    "Phases": "phases",
    "Scheduling": "scheduling",
    "Adapter": "adapters.0",
    "Context": "contexts.0",
    "Security": "contexts.0.security",
    "RandomContent": "content",
    "RecordedContent": "content",
    "Node": "nodes.0",
    "Endpoint": "nodes.0.writers.0",
    "Writer": "nodes.0.writers.0",
    "Reader": "nodes.1.readers.0",
    "Answers": "nodes.2.writers.0.answers",
    "Qos": "nodes.0.writers.0.qos",
    "Liveliness": "nodes.0.writers.0.qos.liveliness",
    "Rule": "nodes.1.rules.0",
    "TimerRule": "nodes.0.rules.0",
    "ClosedLoopRule": "nodes.1.rules.1",
    "NormalWork": "nodes.0.rules.0.work",
    "LognormalWork": "nodes.1.rules.0.work",
    "RecordedWork": "nodes.0.rules.1.work",
    "MessageRule": "nodes.1.rules.0",
    "PoissonSchedule": "nodes.0.rules.0.schedule",
    "BurstSchedule": "nodes.0.rules.1.schedule",
    "RampSchedule": "nodes.0.rules.2.schedule",
    "RecordedSchedule": "nodes.0.rules.3.schedule",
}
# Bounded further, by the list that they point into.
POINTING = {
    ("Endpoint", "context"),
    ("Context", "adapter"),
    ("Rule", "readers"),
    ("Rule", "writers"),
    ("MessageRule", "uses"),
    ("Writer", "replied_on"),
    ("Answers", "reader"),
}
SECURITY_FILES = (
    "identity_ca",
    "permissions_ca",
    "certificate",
    "private_key",
    "governance",
    "permissions",
)
SECOND = {"kind": "recorded", "path": "/nowhere", "crc32": 1}


def whole_plan() -> Mapping:
    """A plan with every part that there is; no adapter is at its path, so nobody carries it out."""
    schedules: list[Mapping] = [
        {"kind": "poisson", "seed": 1},
        {"kind": "burst", "messages": 2},
        {"kind": "ramp", "end_period_ns": 1_000_000, "begin_ns": 0, "duration_ns": 1_000},
        {"kind": "recorded", "intervals_ns": [5_000]},
    ]
    rules = [{**timer(MILLISECOND_NS), "schedule": each} for each in schedules]
    rules[0]["work"] = {"kind": "normal", "spread_ns": 1, "seed": 1}
    rules[1]["work"] = {"kind": "recorded", "times_ns": [1]}
    relay = any_message(writers=(0,), uses=[1], work={"kind": "lognormal", "sigma": 0.5, "seed": 1})
    nodes = [
        node("source", 0, [], [writer("a", 0, sizes_bytes=[4])], rules, "waitset"),
        node(
            "relay",
            1,
            [reader("a", [0]), reader("b", [1])],
            [writer("b", 1)],
            [relay, closed_loop()],
            "waitset",
        ),
        node(
            "server",
            2,
            [reader("asked", [3]), reader("called", [4])],
            [
                writer("asked", 2, answers={"reader": 0, "stream": 3}),
                writer("called", 5, replied_on=1),
            ],
            [any_message(writers=(0,)), any_message(readers=[1])],
            "waitset",
        ),
    ]
    given = plan("/nowhere/absent", "/nowhere/runtime", nodes)
    given["scheduling"]["cpus"] = [0]
    given["nodes"][0]["cpus"] = [0]
    given["nodes"][0]["writers"][0]["qos"]["liveliness"] = {"kind": "manual", "lease_ns": 1_000_000_000}
    given["contexts"][0]["security"] = {"kind": "sign", **dict.fromkeys(SECURITY_FILES, "/nowhere")}
    return {**given, "content": {"kind": "random", "seed": 1}, "heap_offset_bytes": 16}


def parent_of(document: Any, path: str) -> tuple[Any, Any]:
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        document = document[part]
    return document, last


def changed(path: str, value: object, document: Mapping | None = None) -> bytes:
    """The plan with this value at a path such as `nodes.0.name`."""
    given = copy.deepcopy(document or whole_plan())
    parent, last = parent_of(given, path)
    parent[last] = value
    return json.dumps(given).encode()


def in_words(path: str) -> str:
    """A path as workers write it: `nodes[0].name`."""
    parts = path.split(".")
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts).removeprefix(".")


def refusal(kind: Kind, line: bytes) -> str:
    """Why the worker refused a plan; whatever it says is the protocol's."""
    said = kind.run(line + b"\n")
    assert (said.code, said.names) == (2, ["failed"]), (said.events, said.errors[-500:])
    failed = said.event("failed")
    assert (failed["phase"], failed["reason"]) == ("plan", "bad-plan")
    return str(failed["message"])


def beyond(bound: Bound, holds: Any) -> Iterator[tuple[Any, str]]:
    """Values just outside of a bound, and what is said of each. holds: the value in the sound plan."""
    if bound.name.endswith("_characters"):
        yield "é" * (bound.high + 1), f": is longer than {bound.high} characters"
        if bound.low:
            yield "", ": is empty"
    elif bound.name.endswith("_items"):
        yield [holds[0] if holds else 0] * (bound.high + 1), f": has more than {bound.high} items"
        if bound.low:
            yield [], ": is empty"
    else:
        outside = f"outside {bound.low} … {bound.high}"
        more = 1 if bound.whole else 0.5
        for value in (bound.low - more, bound.high + more):
            said = f"is {value}, {outside}"
            if value == 2**64:
                said = "must be a whole number of 64 bits, not a number"
            yield ([value], f"[0]: {said}") if isinstance(holds, list) else (value, f": {said}")
        if bound.step > 1:
            yield bound.low + 1, f": is {bound.low + 1}, no multiple of {bound.step}"


def cases() -> list[tuple[str, bytes, str]]:
    """Each bound, a plan that exceeds it, and the whole refusal."""
    found = []
    for model in models():
        for bound in bounds(model):
            if (model.__name__, bound.name) in POINTING:
                continue
            document = whole_plan()
            if model.__name__ == "RecordedContent":
                document["content"] = SECOND
            key = bound.name.removesuffix("_characters").removesuffix("_items")
            path = f"{PLACES[model.__name__]}.{key}".removeprefix(".")
            if bound.name == "environment_characters":
                document["adapters"][0]["environment"] = {"A": "b"}
                path += ".A"
            parent, last = parent_of(document, path)
            for value, said in beyond(bound, parent.get(last)):
                found.append(
                    (f"{model.__name__}.{bound.name}", changed(path, value, document), in_words(path) + said)
                )
    return found


def test_each_bound_is_refused_with_its_place(kind: Kind) -> None:
    each_case = cases()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        messages = list(pool.map(lambda case: refusal(kind, case[1]), each_case))
    wrong = [
        (name, message, expected)
        for (name, _, expected), message in zip(each_case, messages, strict=True)
        if message != expected
    ]
    assert not wrong
    assert len(each_case) > 100


OTHER_END = "is a reader of another topic or context: both ends of a service must have the same"
REPLIES = "has a writer of replies: such a rule has the trigger any, and the reader of the requests"
DAMAGE = [
    ("nodes.2.writers.0.answers.reader", 1, f"nodes[2].writers[0].answers.reader: {OTHER_END}"),
    ("nodes.2.writers.1.replied_on", 0, f"nodes[2].writers[1].replied_on: {OTHER_END}"),
    (
        "nodes.2.writers.1.answers",
        {"reader": 1, "stream": 4},
        "nodes[2].writers[1].answers: conflicts with replied_on: a writer sends requests or replies",
    ),
    ("nodes.2.rules.0.readers", [1], f"nodes[2].rules[0].writers: {REPLIES}"),
    ("nodes.2.rules.0.readers", [0, 1], f"nodes[2].rules[0].writers: {REPLIES}"),
    ("nodes.2.rules.0.trigger", "all", f"nodes[2].rules[0].writers: {REPLIES}"),
    ("surprise", 1, "surprise: is not a key of a plan"),
    ("worker.color", 1, "worker.color: is not a key of a plan"),
    ("nodes.1.readers.0.qos.reliable", True, "nodes[1].readers[0].qos.reliable: is not a key of a plan"),
    ("nodes.1.rules.0.period_ns", 5000, "nodes[1].rules[0].period_ns: is not a key of a plan"),
    ("content", {"kind": "recorded", "path": "x"}, "content.crc32: is missing"),
    ("cell", 7, "cell: must be text, not a number"),
    ("cell", "a\0b", "cell: holds a zero byte"),
    ("trial", 1.5, "trial: must be a whole number of 64 bits, not a number"),
    ("trial", True, "trial: must be a whole number of 64 bits, not a truth value"),
    ("trial", "1", "trial: must be a whole number of 64 bits, not text"),
    ("phases.measure_ns", 1e9, "phases.measure_ns: must be a whole number of 64 bits, not a number"),
    ("standalone", 1, "standalone: must be true or false, not a number"),
    ("scheduling.lock_memory", None, "scheduling.lock_memory: must be true or false, not null"),
    ("worker", [], "worker: must be an object, not a list"),
    ("nodes.1", None, "nodes[1]: must be an object, not null"),
    ("adapters", {}, "adapters: must be a list, not an object"),
    ("adapters.0.options", [], "adapters[0].options: must be an object, not a list"),
    ("nodes.1.rules.0.work.sigma", "wide", "nodes[1].rules[0].work.sigma: must be a number, not text"),
    ("scheduling.policy", "rr", "scheduling.policy: is 'rr', must be other | fifo"),
    ("scheduling.policy", "fifo", "scheduling.priority: is 0; FIFO needs 1 … 99"),
    ("touch", "all", "touch: is 'all', must be header | write | read | write+read"),
    ("adapters.0.profile", "fast", "adapters[0].profile: is 'fast', must be default | matched"),
    ("nodes.0.dispatch", "magic", "nodes[0].dispatch: is 'magic', must be poll | waitset | listener"),
    (
        "nodes.0.rules.0.trigger",
        "never",
        "nodes[0].rules[0].trigger: is 'never', must be timer | any | all | closed_loop",
    ),
    (
        "nodes.0.writers.0.qos",
        {"history": "all"},
        "nodes[0].writers[0].qos.history: is 'all', must be keep_last | keep_all",
    ),
    ("adapters.0.environment", {"A=B": "c"}, "adapters[0].environment.A=B: is not the name of a variable"),
    ("adapters.0.environment", {"A": 1}, "adapters[0].environment.A: must be text, not a number"),
    ("start", "now", "start: is 'now', must be matched | subscriber-first | publisher-first"),
    ("threads", "many", "threads: is 'many', must be per-node | per-process"),
    (
        "threads",
        "per-process",
        "nodes[1].cpus: differs from that of nodes[0], which is served by the same thread",
    ),
    ("contexts.0.adapter", 1, "contexts[0].adapter: is 1, outside 0 … 0"),
    ("nodes.1.readers.0.context", 1, "nodes[1].readers[0].context: is 1, outside 0 … 0"),
    ("nodes.0.rules.0.writers", [1], "nodes[0].rules[0].writers[0]: is 1, outside 0 … 0"),
    ("nodes.0.rules.0.readers", [0], "nodes[0].rules[0].readers[0]: points at an empty list"),
    ("nodes.1.rules.0.readers", [0, 0], "nodes[1].rules[0].readers[1]: is listed twice"),
    (
        "nodes.1.rules.0.readers",
        [],
        "nodes[1].rules[0].readers: is empty: only a timer fires without a message",
    ),
    ("nodes.1.rules.1.writers", [], "nodes[1].rules[1].writers: is empty: a closed loop sends"),
    ("nodes.0.rules.0.echo", True, "nodes[0].rules[0].echo: goes with the trigger any alone"),
    ("nodes.1.rules.0.uses", [2], "nodes[1].rules[0].uses[0]: is 2, outside 0 … 1"),
    ("nodes.1.rules.1.uses", [1], "nodes[1].rules[1].uses: goes with the triggers any and all alone"),
    (
        "nodes.0.writers.0.sizes_bytes",
        [64, 65],
        "nodes[0].writers[0].sizes_bytes[1]: is 65, larger than payload_bytes or no size of the type bytes",
    ),
    (
        "nodes.0.writers.0.content",
        {"kind": "fog"},
        "nodes[0].writers[0].content.kind: is 'fog', must be any | zeros | random | recorded",
    ),
    (
        "nodes.1.readers.0.sizes_vary",
        1,
        "nodes[1].readers[0].sizes_vary: must be true or false, not a number",
    ),
    (
        "nodes.1.readers.0.shares_clock",
        0,
        "nodes[1].readers[0].shares_clock: must be true or false, not a number",
    ),
    ("nodes.1.index", 0, "nodes[1].index: another node has 0 too"),
    ("nodes.1.writers.0.stream", 0, "nodes[1].writers[0].stream: another writer has 0 too"),
    (
        "nodes.0.rules.3.schedule.intervals_ns",
        [0, 10],
        "nodes[0].rules[3].schedule.intervals_ns: must have a mean of 1000 ns or more",
    ),
]


def test_one_thread_dispatches_in_one_way(kind: Kind) -> None:
    line = changed("nodes.1.dispatch", "poll", {**whole_plan(), "threads": "per-process"})
    said = "nodes[1].dispatch: differs from that of nodes[0], which is served by the same thread"
    assert refusal(kind, line) == said


def test_what_is_wrong_is_named_with_its_place(kind: Kind) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        messages = list(pool.map(lambda damage: refusal(kind, changed(damage[0], damage[1])), DAMAGE))
    assert messages == [said for *_, said in DAMAGE]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "plan: is not JSON"),
        (b"\xff{}", "plan: is not JSON"),
        (b"[NaN]", "plan: is not JSON"),
        (json.dumps(whole_plan()).encode() + b"{}", "plan: is not JSON"),
        (b"[]", "plan: must be an object, not a list"),
        (b"[" * 200_000 + b"]" * 200_000, "plan: is nested more than 32 levels deep"),
        (
            changed("adapters.0.options", json.loads('{"a":' * 40 + "0" + "}" * 40)),
            "plan: is nested more than 32 levels deep",
        ),
        (changed("nodes.0.name", "\ud800"), ""),
    ],
    ids=["empty", "encoding", "nan", "two", "list", "deep", "deep options", "half a pair"],
)
def test_what_is_no_plan_at_all_is_said(kind: Kind, line: bytes, said: str) -> None:
    assert refusal(kind, line).startswith(said)


def test_a_plan_at_its_bounds_is_accepted(kind: Kind, tmp_path: Path) -> None:
    """Both read it whole, and only miss its adapter."""
    given = whole_plan()
    given["runtime_directory"] = str(tmp_path / "runtime")
    given["cell"] = "é" * 4096
    given["phases"]["measure_ns"] = 24 * 3_600_000_000_000
    given["heap_offset_bytes"] = 4080
    given["nodes"][0]["rules"][0]["schedule"]["seed"] = 2**64 - 1
    given["nodes"][0]["rules"][3]["schedule"]["intervals_ns"] = [1000] * 2**20
    given["content"] = {"kind": "any"}
    jsonschema.validate(given, json.loads((ROOT / "schema" / "plan.schema.json").read_text()))
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-missing")
