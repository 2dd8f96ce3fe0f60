# SPDX-License-Identifier: Apache-2.0
"""The parts of the worker in Python: its plan, its records block, its schedules, and what it refuses."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from needs import ROOT
from plan_parts import MILLISECOND_NS, pingpong, pipeline, plan

from lagometer.store.records import KIND_CAUSES, KIND_RECEIVED, KIND_SENT, Lane, decode
from lagometer.worker_python import records
from lagometer.worker_python.adapter import AdapterError, AdapterMissing, accepted, load, probed
from lagometer.worker_python.endpoint import Input
from lagometer.worker_python.fields import PlanError
from lagometer.worker_python.plan import parse_plan
from lagometer.worker_python.plan_bounds import IN_FLIGHT_MAX_NS
from lagometer.worker_python.schedule import Random, Schedule, SchedulePlan, Work, WorkPlan, messages_due
from lagometer.worker_python.stage import Stage

COMMAND = [sys.executable, "-I", "-m", "lagometer.worker_python"]


def base() -> dict[str, Any]:
    return plan("/adapters/x/x.py", "/dev/shm/lagometer", pipeline("waitset"))


def test_a_plan_is_read_as_it_was_written() -> None:
    document = plan("/adapters/x/x.py", "/run", pingpong("poll", 7))
    document["nodes"][0]["rules"][0]["work"] = {"kind": "lognormal", "sigma": 1, "seed": 2**64 - 1}
    document["content"] = {"kind": "random", "seed": 3}
    read = parse_plan(json.dumps(document).encode())
    assert (read.touch_write, read.touch_read, read.content.seed, read.standalone) == (True, True, 3, True)
    ping, pong = read.nodes
    assert (ping.name, ping.dispatch, ping.readers[0].streams, ping.writers[0].stream) == (
        "ping",
        "poll",
        (1,),
        0,
    )
    assert (ping.rules[0].trigger, ping.rules[0].messages_max) == ("closed_loop", 7)
    assert (ping.rules[0].work.sigma, ping.rules[0].work.seed) == (1.0, 2**64 - 1)
    assert pong.rules[0].echo
    assert read.contexts[0].name == "context"
    assert ping.readers[0].qos.depth == 64


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = base()
    change(document)
    return json.dumps(document).encode()


def put(path: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Sets the value at a path such as `nodes.0.name`."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in way:
            place = place[part]
        place[last] = value

    return change


PROGRAM_THAT_MOVES = """
import ctypes, sys
from lagometer.worker_python.machine import heap_end, move_heap
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [library.malloc(size) for size in (5_000, 100_000) * 200]
for block in blocks[:200:2] + blocks[1:200:2] + blocks[200::3]:  # a large hole, and many small ones
    library.free(block)
end = heap_end()
move_heap(int(sys.argv[1]))
print(*((library.malloc(size) - end) % 4096 for size in (5_000, 50_000, 100_000)))
"""


def test_the_heap_is_moved_as_told() -> None:
    """In processes of their own, since it lasts until the process ends."""

    def places(offset_bytes: int) -> list[int]:
        command = [sys.executable, "-c", PROGRAM_THAT_MOVES, str(offset_bytes)]
        output = subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout
        return [int(place) for place in output.split()]

    unmoved = places(0)
    for offset in (16, 1024, 4080):
        assert [(now - before) % 4096 for now, before in zip(places(offset), unmoved, strict=True)] == [
            offset
        ] * 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff{}", "is not JSON"),
        (b'{"protocol": NaN}', "NaN is not a number"),
        (b"[" * 200_000 + b"]" * 200_000, "nested more than 32 levels"),
        (
            changed(put("adapters.0.options", json.loads('{"a":' * 40 + "0" + "}" * 40))),
            "nested more than 32",
        ),
        (b'{"protocol": ' + b"1" * 5000 + b"}", "is not JSON"),
    ],
    ids=["empty", "encoding", "nan", "deep", "deep options", "long number"],
)
def test_what_is_no_plan_at_all_is_said(line: bytes, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        parse_plan(line)


def test_what_it_reads_the_published_schema_accepts() -> None:
    schema = json.loads((ROOT / "schema" / "plan.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(base(), schema)
    parse_plan(json.dumps(base()).encode())


def recorder(descriptor: int | None = None) -> records.Recorder:
    lanes = [
        records.LaneSpecification(KIND_SENT, 3, 7, 4),
        records.LaneSpecification(KIND_CAUSES, 3, 7, 3),
        records.LaneSpecification(KIND_RECEIVED, 3, 0, 2),
    ]
    return records.Recorder(5, 2, lanes, descriptor)


def fill(made: records.Recorder) -> None:
    sent, causes, received = made.lanes
    sent.add(records.SENT, 2**64 - 1, 1, 2, 3, 4, 5, 2, 0, 1, 65535, 0, 6)
    causes.add(records.CAUSE, 4, 5, 0)
    causes.add(records.CAUSE, 6, 8, 0)
    for number in range(3):  # the lane has room for two
        received.add(records.RECEIVED, number, 0, 11, 12, 13, 7, 64, 1, 65535, 0, 0)


def check(lanes: list[Lane], *, full: bool = True) -> None:
    sent, causes, received = lanes
    assert [(lane.worker, lane.host) for lane in lanes] == [(5, 2)] * 3
    assert [(lane.kind, lane.node, lane.endpoint) for lane in lanes] == [(1, 3, 7), (3, 3, 7), (2, 3, 0)]
    assert [lane.full for lane in lanes] == [False, False, full]
    assert sent.records.tolist() == [(2**64 - 1, 1, 2, 3, 4, 5, 2, 0, 1, 65535, 0, 6)]
    assert causes.records.tolist() == [(4, 5, 0), (6, 8, 0)]
    assert received.records.tolist() == [(n, 0, 11, 12, 13, 7, 64, 1, 65535, 0, 0) for n in range(2)]


def test_the_projects_own_reader_reads_the_block_back() -> None:
    made = recorder()
    assert [len(lane.records) for lane in decode(made.packed())] == [0, 0, 0]
    fill(made)
    check(decode(made.packed()))
    assert made.count() == 5
    assert (made.lanes[0].room, made.lanes[2].room, made.lanes[2].full) == (3, 0, True)


def test_records_lie_in_the_inherited_memory_as_they_are_made() -> None:
    descriptor = os.memfd_create("test")
    try:
        made = recorder(descriptor)
        with mmap.mmap(descriptor, 0) as seen:
            assert [len(lane.records) for lane in decode(bytes(seen))] == [0, 0, 0]
            fill(made)
            check(decode(bytes(seen)))
    finally:
        os.close(descriptor)


def test_more_records_than_there_is_memory_for_are_refused() -> None:
    lanes = [records.LaneSpecification(KIND_SENT, 0, number, 1 << 26) for number in range(3)]
    with pytest.raises(records.NoRoom, match="a worker may have"):
        records.Recorder(0, 0, lanes, None)


@pytest.mark.parametrize("ahead_ns", [0, 10**10, -(10**10)])
def test_a_stream_is_matched_by_a_probe_that_was_sent_when_another_was_heard(ahead_ns: int) -> None:
    """Whatever the sender's clock says."""
    given = parse_plan(changed(put("nodes.1.readers.0.streams", [0, 5])))
    reader = Input(given.nodes[1].readers[0], 0, given)
    heard_ns, enough_ns = 10**12, IN_FLIGHT_MAX_NS

    def missing(stream: int, sent_ns: int, taken_ns: int) -> list[int]:
        reader.note_probe(stream, heard_ns + sent_ns + ahead_ns, heard_ns + taken_ns)
        return reader.missing()

    assert missing(0, 0, 1_000) == missing(7, enough_ns, enough_ns) == [0, 5]
    assert missing(0, enough_ns, 2_000) == [0, 5], "it waited with the first for its reader"
    assert missing(0, enough_ns - 1, 2 * enough_ns) == [0, 5], "the first may still have been on its way"
    assert missing(0, enough_ns, enough_ns + 1_000) == [5]
    assert missing(5, 0, 0) == missing(0, 0, 0) == [5]
    assert missing(5, enough_ns, enough_ns) == []


@pytest.mark.parametrize("small", [False, True])
def test_times_of_one_clock_are_compared(small: bool) -> None:
    """A small payload has only the low bits of a time, so the general rule holds for it."""
    given = parse_plan(changed(put("nodes.1.readers.0.shares_clock", True)))
    reader = Input(replace(given.nodes[1].readers[0], sizes_vary=small), 0, given)
    heard_ns, enough_ns = 10**12, IN_FLIGHT_MAX_NS

    def missing(sent_ns: int, taken_ns: int) -> list[int]:
        reader.note_probe(0, heard_ns + sent_ns, heard_ns + taken_ns)
        return reader.missing()

    assert missing(-enough_ns, 0) == [0]
    assert missing(-1, enough_ns - 1) == missing(0, enough_ns - 1) == [0], "sent before the first was heard"
    assert missing(1, 2) == ([0] if small else []), "sent after it"
    assert missing(0, enough_ns) == []


def test_random_numbers_are_those_of_splitmix64() -> None:
    """The reference implementation's first outputs for the seed 1234567 (Vigna, splitmix64.c)."""
    chance = Random(1234567)
    assert [chance.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_a_ramp_goes_from_one_rate_to_the_other() -> None:
    ramp = SchedulePlan("ramp", end_period_ns=MILLISECOND_NS, begin_ns=0, duration_ns=1_000 * MILLISECOND_NS)
    schedule = Schedule(ramp, 10 * MILLISECOND_NS)
    times = [schedule.next_ns() for _ in range(600)]
    assert times[0] == 0 and sorted(times) == times
    # 100 Hz to 1 kHz in a second: 550 messages, then one each millisecond.
    assert abs(times[550] - 1_000 * MILLISECOND_NS) <= 1
    assert times[551] - times[550] == pytest.approx(MILLISECOND_NS, abs=1)
    assert messages_due(ramp, 10 * MILLISECOND_NS, 0, 0, 1_000 * MILLISECOND_NS) in (550, 551)


def test_bursts_recordings_and_periods_repeat() -> None:
    burst = Schedule(SchedulePlan("burst", messages=3), 10)
    assert [burst.next_ns() for _ in range(7)] == [0, 0, 0, 30, 30, 30, 60]
    recorded = Schedule(SchedulePlan("recorded", intervals_ns=(5, 7)), 0)
    assert [recorded.next_ns() for _ in range(5)] == [0, 5, 12, 17, 24]
    assert messages_due(SchedulePlan(), 10, 5, 5, 30) == 3
    assert messages_due(SchedulePlan(), 10, 5, 0, 5) == 0


def test_work_is_drawn_around_what_the_rule_says() -> None:
    normal = Work(WorkPlan("normal", spread_ns=1_000, seed=1), 1_000)
    drawn = [normal.next_ns() for _ in range(2_000)]
    assert min(drawn) >= 0 and max(drawn) > 2_000
    lognormal = sorted(
        Work(WorkPlan("lognormal", sigma=0.5, seed=seed), 10_000).next_ns() for seed in range(999)
    )
    assert 9_000 < lognormal[499] < 11_000
    assert Work(WorkPlan(), 17).next_ns() == 17


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("liblagometer_shm.so", "", "is no Python module; it is for lagometer-worker"),
        ("absent.py", None, "is not there"),
        ("broken.py", "1 / 0", "ZeroDivisionError"),
        ("wanting.py", "import no_such_client_library", "no_such_client_library.*make bench ADAPTERS=all"),
        ("empty.py", "", "AttributeError.*probe"),
    ],
)
def test_what_is_no_adapter_is_refused(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    library = tmp_path / name
    if content is not None:
        library.write_text(content)
    with pytest.raises(AdapterMissing, match=said):
        load("x", str(library))
    answer = subprocess.run([*COMMAND, "--probe", str(library)], capture_output=True, timeout=30)
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["error"]


WRONG_PROBES = """\
def probe(options):
    return {options!r}


def open_context(configuration):
    return misspelt
"""


def test_an_adapters_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    library = tmp_path / "mine.py"
    library.write_text(WRONG_PROBES.replace("{options!r}", "misspelt"))
    answer = subprocess.run([*COMMAND, "--probe", str(library)], capture_output=True, timeout=30)
    assert json.loads(answer.stdout)["error"] == "NameError: name 'misspelt' is not defined (mine.py, line 2)"
    library.write_text(WRONG_PROBES.replace("{options!r}", "{'version': '1'}"))
    with pytest.raises(AdapterError, match=r"probe returned \{'version': '1'\}; it must return Probe"):
        probed(load("mine", str(library)), {})


def test_a_misspelt_import_of_ours_is_not_taken_for_a_missing_package(tmp_path: Path) -> None:
    library = tmp_path / "mine.py"
    library.write_text("from lagometer.worker_python.arrivals import Arrival\n")
    with pytest.raises(AdapterMissing, match=r"cannot import name 'Arrival'.*\(mine.py, line 1\)") as refused:
        load("mine", str(library))
    assert "make bench" not in str(refused.value)


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_what_commit_gives_is_true_or_false(answer: object) -> None:
    assert accepted(True) and not accepted(False)
    with pytest.raises(AdapterError, match=f"commit returned {answer!r}; it must return True"):
        accepted(answer)


def test_a_thread_of_the_adapters_that_dies_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    monkeypatch.setattr(threading, "excepthook", stage.thread_died)
    monkeypatch.setattr(threading, "__excepthook__", lambda _: None)
    thread = threading.Thread(target=lambda: 1 // 0, name="receiver")
    thread.start()
    thread.join()
    assert stage.failure.startswith("the adapter's thread receiver died: ZeroDivisionError: ")


def test_a_thread_may_end_by_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    monkeypatch.setattr(threading, "excepthook", stage.thread_died)
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    assert not stage.failure


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--help", 0), ("--no-such", 2)])
def test_its_arguments(argument: str, code: int) -> None:
    answer = subprocess.run([*COMMAND, argument], capture_output=True, timeout=30)
    assert answer.returncode == code
    assert b"lagometer" in (answer.stdout or answer.stderr)


@pytest.mark.parametrize("line", [b"", b"no plan\n", b"{}\n"])
def test_without_a_plan_it_says_so(line: bytes) -> None:
    answer = subprocess.run(COMMAND, input=line, capture_output=True, timeout=30)
    (said,) = [json.loads(each) for each in answer.stdout.splitlines()]
    assert (answer.returncode, said["event"], said["reason"]) == (2, "failed", "bad-plan")
    assert said["message"]


def test_it_loads_nothing_but_the_standard_library() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport lagometer.worker_python.main\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    answer = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=30)
    assert answer.stdout.split() == ["lagometer"]
