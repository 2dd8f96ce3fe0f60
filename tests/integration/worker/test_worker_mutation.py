# SPDX-License-Identifier: Apache-2.0
"""Damaged plans: no worker dies of one, hangs, or keeps to itself what is wrong.

The seed is printed; LAGOMETER_SEED repeats a run, LAGOMETER_MUTATIONS sets how many the worker in C++ meets,
LAGOMETER_MUTATIONS_PYTHON how many each adapter of the worker in Python.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from needs import IN_PYTHON, ROOT, adapter_library, as_offered, need
from plan_parts import MILLISECOND_NS, any_message, node, pingpong, pipeline, plan, reader, timer, writer
from worker_support import worker_command

pytestmark = pytest.mark.by_turn

MUTATIONS = int(os.environ.get("LAGOMETER_MUTATIONS", "1000"))
MUTATIONS_PYTHON = int(os.environ.get("LAGOMETER_MUTATIONS_PYTHON", "200"))
SEED = int(os.environ.get("LAGOMETER_SEED", random.SystemRandom().randrange(1 << 32)))
TIMEOUT_S = 60.0
LASTING = ("discovery_timeout_ns", "warmup_ns", "measure_ns", "drain_ns", "work_ns")
LONGEST_NS = 500 * MILLISECOND_NS
AT_ONCE = 2
# A plan may ask for more memory than there is: the worker must say so, and not meet the kernel's killer.
# (A sanitizer's shadow memory leaves no room for such a limit: there LAGOMETER_ADDRESS_SPACE is `unlimited`.)
ADDRESS_SPACE_BYTES = (
    resource.RLIM_INFINITY if os.environ.get("LAGOMETER_ADDRESS_SPACE") == "unlimited" else 2 << 30
)

# Middleware in a network of its own, since a plan that is still sound makes it look for its peers, and with
# shared memory of its own, where it leaves what it has when a worker gives up.
ISOLATED = 'ip link set lo up multicast on 2>/dev/null; mount -t tmpfs tmpfs /dev/shm && exec "$@"'
IN_CPP = "in C++"
SUBJECTS = pytest.mark.parametrize("subject", [IN_CPP, *IN_PYTHON])  # the latter: by adapter

Mutation = Callable[[random.Random, Any], bytes]
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 15, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
    0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "\x00", "é" * 40, "x" * 5000, "../../..", "%s%n",
    [], {}, [[]], [None], {"": 0}, "closed_loop", "poll", "listener", "keep_all", "transient_local", "fixed",
    "reliable", "fifo",
)  # fmt: skip


SHORT = {
    "discovery_timeout_ns": 40 * MILLISECOND_NS,
    "warmup_ns": MILLISECOND_NS,
    "measure_ns": 4 * MILLISECOND_NS,
    "drain_ns": MILLISECOND_NS,
}
SMALL = {"capacity": 500}


def short_plans(library: Path, directory: Path) -> list[dict[str, Any]]:
    """A pipeline, a closed loop and, on one thread, a graph of timers and triggers; phases of ms."""
    mixed = [
        node("camera", 0, [], [writer("a", 0, **SMALL)], [timer(MILLISECOND_NS)], "waitset"),
        node(
            "fusion",
            1,
            [reader("a", [0], **SMALL), reader("b", [], **SMALL)],
            [writer("b", 1, **SMALL)],
            [timer(MILLISECOND_NS, readers=(0, 1)), {**any_message(), "readers": [0, 1], "trigger": "all"}],
            "waitset",
        ),
    ]
    return [
        plan(library, directory, pipeline("waitset", **SMALL), **SHORT),
        plan(library, directory, pingpong("poll", 5, **SMALL), **SHORT),
        plan(library, directory, mixed, **SHORT) | {"threads": "per-process"},
    ]


def base_plans(subject: str, directory: Path) -> list[dict[str, Any]]:
    """What is damaged. In C++: cells within the process, over shared memory and over UDP."""
    if subject != IN_CPP:
        library = adapter_library(subject)
        return [as_offered(subject, each) for each in short_plans(library, directory)]
    best_effort = {"qos": {"reliability": "best_effort"}, **SMALL}
    return [
        *short_plans(adapter_library("null"), directory),
        plan(adapter_library("shm"), directory, pingpong("listener", 5, **SMALL), **SHORT),
        plan(adapter_library("udp"), directory, pipeline("waitset", **best_effort), **SHORT),
    ]


def command_of(subject: str, build: Path) -> list[str]:
    """The worker that this subject is about, where it may do no harm; skips what is not there."""
    if subject == IN_CPP:
        return worker_command(build, "")
    for each in ("netns", "ip", subject):
        need(each)
    unshare = ["unshare", "-nm"] if os.geteuid() == 0 else ["unshare", "-Urnm"]
    return [*unshare, "sh", "-c", ISOLATED, "worker", *worker_command(build, adapter_library(subject))]


def published_schema() -> Any:
    return json.loads((ROOT / "schema" / "plan.schema.json").read_text(encoding="utf-8"))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += places(each, (*path, key))
    return found


def parent_of(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def change_structure(chance: random.Random, document: Any) -> bytes:
    """One to three values deleted, doubled, renamed, replaced or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        path = chance.choice(places(document))
        parent, key = parent_of(document, path), path[-1]
        what = chance.randrange(6)
        if what == 0:
            del parent[key]
        elif what == 1 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif what == 1:
            parent[f"{key}{chance.choice('s_ ')}"] = parent.pop(key)
        elif what == 2:
            other = chance.choice(places(document))
            parent[key] = copy.deepcopy(parent_of(document, other)[other[-1]])
        elif what == 3 and isinstance(parent[key], int):
            parent[key] = parent[key] * chance.choice((-1, 2, 10, 1000, 2**20)) + chance.choice((-1, 0, 1))
        else:
            parent[key] = copy.deepcopy(chance.choice(ODD_VALUES))
    return json.dumps(document).encode()


def change_text(chance: random.Random, document: Any) -> bytes:
    """The document's text cut, spattered with random bytes, or with a key twice."""
    text = bytearray(json.dumps(document).encode())
    what = chance.randrange(4)
    if what == 0:
        return bytes(text[: chance.randrange(len(text))])
    if what == 1:
        for _ in range(chance.randrange(1, 20)):
            text[chance.randrange(len(text))] = chance.choice([b for b in range(256) if b != 10])
        return bytes(text)
    if what == 2:
        at = text.index(b'"', chance.randrange(len(text) // 2)) + 1
        return bytes(text[:at] + chance.choice((b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf5")) + text[at:])
    key = chance.choice(list(document))
    return bytes(text[:-1] + f", {json.dumps(key)}: {json.dumps(chance.choice(ODD_VALUES))}}}".encode())


def nest_deeply(chance: random.Random, document: Any) -> bytes:
    path = chance.choice([path for path in places(document) if isinstance(path[-1], str)])
    mark = "~the depths~"
    parent_of(document, path)[path[-1]] = mark
    depth = chance.choice((50, 1000, 200_000))
    opening, closing = chance.choice((("[", "]"), ('{"a":', "}")))
    deep = opening * depth + "0" + closing * depth
    return json.dumps(document).replace(json.dumps(mark), deep).encode()


def damaged(chance: random.Random, document: Any) -> bytes:
    """A damaged plan; not one that is sound and lasts long."""
    while True:
        mutation: Mutation = chance.choices((change_structure, change_text, nest_deeply), (16, 4, 1))[0]
        text = mutation(chance, copy.deepcopy(document)).replace(b"\n", b" ")
        numbers = re.findall(rb'"(?:%s)": (\d{1,19})[,}]' % "|".join(LASTING).encode(), text)
        if all(int(number) <= LONGEST_NS for number in numbers):
            return text


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))


def schema_refuses(schema: jsonschema.Draft202012Validator, text: bytes) -> bool:
    """Whether the published schema refuses a text that is JSON. (NaN is not, although Python reads it.)"""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    try:
        return not schema.is_valid(value)
    except RecursionError:
        return False


def wrong_with(
    command: Sequence[str], schema: jsonschema.Draft202012Validator, text: bytes, folder: Path
) -> str | None:
    """What the worker did that it must not, given this plan; None if nothing."""
    try:
        result = subprocess.run(
            command,
            input=text + b"\n",
            capture_output=True,
            timeout=TIMEOUT_S,
            preexec_fn=limit_memory,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return "it hangs"
    if result.returncode < 0:
        return f"it died of signal {-result.returncode}"
    lines = [
        json.loads(line)
        for line in result.stdout.splitlines()
        if line.startswith(b'{"') and line.endswith(b"}")
    ]
    failed = [line for line in lines if line.get("event") == "failed"]
    refused = failed and failed[0]["reason"] == "bad-plan"
    if result.returncode == 0:
        if failed or not lines or lines[-1]["event"] not in ("bye", "records"):
            return "it ended well and did not say bye"
        return "the schema refuses what it carried out" if schema_refuses(schema, text) else None
    if len(failed) != 1 or not failed[0]["message"]:
        return f"it ended with {result.returncode} and said {len(failed)} times why"
    if not refused and schema_refuses(schema, text):
        return f"the schema refuses it, but the worker failed only later: {failed[0]}"
    return None


@SUBJECTS
def test_no_damaged_plan_is_too_much(build: Path, tmp_path: Path, subject: str) -> None:
    print(f"LAGOMETER_SEED={SEED}")
    command = command_of(subject, build)
    schema = jsonschema.Draft202012Validator(published_schema())
    bases = base_plans(subject, tmp_path / "run")
    texts = []
    for number in range(MUTATIONS if subject == IN_CPP else MUTATIONS_PYTHON):
        chance = random.Random(f"{SEED} {subject} {number}")
        texts.append(damaged(chance, chance.choice(bases)))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(pool.map(lambda each: wrong_with(command, schema, each, tmp_path), texts))
    wrong = [(number, verdict) for number, verdict in enumerate(verdicts) if verdict]
    for number, verdict in wrong[:5]:
        print(f"plan {number}: {verdict}\n{texts[number][:6000].decode(errors='replace')}\n")
    assert not wrong, f"LAGOMETER_SEED={SEED}: {len(wrong)} of {len(texts)}: {wrong[:20]}"


@SUBJECTS
def test_the_plans_that_are_damaged_are_sound(build: Path, tmp_path: Path, subject: str) -> None:
    command = command_of(subject, build)
    for base in base_plans(subject, tmp_path / "run"):
        base["phases"]["discovery_timeout_ns"] = 20_000 * MILLISECOND_NS
        jsonschema.validate(base, published_schema())
        text = json.dumps(base).encode()
        result = subprocess.run(command, input=text, capture_output=True, timeout=TIMEOUT_S)
        assert result.returncode == 0, (result.stdout[-500:], result.stderr[-500:])
