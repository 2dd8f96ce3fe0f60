# SPDX-License-Identifier: Apache-2.0
"""Workers that were not matched: what each side counted; many are one reason; how long they get follows from
how many there are."""

from __future__ import annotations

import json
from pathlib import Path

from study_adapters import write_adapters

from lagometer.run.worker.conversation import Conversation
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.messages import Counted, Failed
from lagometer.run.worker.plan import Plan
from lagometer.run.worker.unmatched import COUNTS_MAX, counted, summed_up
from lagometer.study import expand, study_from_mapping

MATCHED = {"event": "matched", "elapsed_ns": 5}
BEFORE = (
    {"event": "hello", "protocol": 1, "worker": 0, "pid": 7, "version": "0.1.0"},
    {"event": "ready", "adapters": [], "settings": []},
)


def plans_of(tmp_path: Path, workload: str, **top: str) -> list[Plan]:
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": workload}, **top}
    study = study_from_mapping(mapping, "test")
    return worker_plans(study, expand(study, adapters, cpus=(0, 1)).cells[0], 0, adapters)


def conversation(index: int, *, unmatched: bool) -> Conversation:
    found = Conversation(index, f"relay-{index}")
    reader = {"node": f"relay-{index}", "reader": 0, "topic": f"lagometer/t{index}"}
    failed = {
        "event": "failed",
        "phase": "discover",
        "reason": "endpoints-missing",
        "message": "not matched within 10000 ms",
        "missing": [{**reader, "streams": [index - 1]}],
    }
    hello = {**BEFORE[0], "worker": index}
    for message in (hello, BEFORE[1], failed if unmatched else MATCHED):
        found.feed(json.dumps(message).encode() + b"\n")
    return found


def at_times(talks: list[Conversation], matched_ns: tuple[int, ...]) -> None:
    """All were ready after 0 ns, these were matched at their times, and the others failed after 10 ns."""
    for talk in talks:
        talk.came_ns = {"ready": 0, "failed": 10}
    for talk, time_ns in zip(talks, matched_ns, strict=False):
        talk.came_ns = {"ready": 0, "matched": time_ns}


def test_many_are_summed_up_with_the_first_and_how_far_discovery_came(tmp_path: Path) -> None:
    plans = plans_of(tmp_path, "pipeline-6")
    talks = [conversation(index, unmatched=index > 2) for index in range(6)]
    at_times(talks, matched_ns=(2, 3, 9))
    each = [f"endpoints-missing: relay-{index} in phase discover" for index in (3, 4, 5)]
    said, other = summed_up([*each, "worker-died: relay-5"], plans, talks)
    assert said.startswith("endpoints-missing: 3 of 5 readers unmatched, first: relay-3 on lagometer/t3; ")
    assert "; they heard 0 of 2 publishers; 3 of 6 workers" in said  # the plan has no relay-5
    assert "3 of 6 workers were matched, the last one 1 ns before the end, so discovery was still" in said
    assert said.endswith("use a longer `discovery_timeout`")
    assert other == "worker-died: relay-5"


def test_those_whose_time_was_not_over_are_neither_matched_nor_unmatched(tmp_path: Path) -> None:
    """The first workers that give up end the trial."""
    talks = [conversation(index, unmatched=index < 3) for index in range(5)]
    talks.append(Conversation(5, "sink"))
    (said,) = summed_up(["endpoints-missing: relay-1"], plans_of(tmp_path, "pipeline-6"), talks)
    assert "; 2 of 6 workers were matched and 1 still waited when the trial ended, the last one " in said


def test_a_discovery_that_had_stopped_is_not_told_to_wait_longer(tmp_path: Path) -> None:
    plans, reasons = plans_of(tmp_path, "pipeline-6"), ["endpoints-missing: relay-3"]
    talks = [conversation(index, unmatched=index > 2) for index in range(6)]
    at_times(talks, matched_ns=(2, 3, 4))
    (said,) = summed_up(reasons, plans, talks)
    assert "the last one 6 ns before the end: discovery had stopped" in said
    assert "`discovery_timeout`" not in said and "use fewer processes" in said
    nobody = [conversation(index, unmatched=True) for index in range(6)]
    (said,) = summed_up(reasons, plans, nobody)
    assert "0 of 6 workers were matched, and none heard anybody: compare domain" in said
    (reader,) = plans[3].nodes[0].readers
    reader.streams.append(77)  # as if it expected another publisher, which it heard
    (said,) = summed_up(reasons, plans, nobody)
    assert "0 of 6 workers were matched, yet some hear others: use a longer" in said


def test_few_are_named_one_by_one(tmp_path: Path) -> None:
    talks = [conversation(index, unmatched=index > 0) for index in range(3)]
    reasons = ("endpoints-missing: relay-1 in phase discover", "endpoints-missing: relay-2 in phase discover")
    assert summed_up(reasons, plans_of(tmp_path, "pipeline-3"), talks) == reasons


def test_the_wait_grows_with_processes_and_endpoints_unless_the_study_says_it(tmp_path: Path) -> None:
    waits = [
        plans_of(tmp_path, name)[0].phases.discovery_timeout_ns for name in ("pipeline-2", "pipeline-100")
    ]
    assert waits[0] < 12 * 10**9
    assert waits[1] > 60 * 10**9  # Fast DDS needed 27.8 s for a hundred
    told = plans_of(tmp_path, "pipeline-100", discovery_timeout="3s")[0].phases.discovery_timeout_ns
    assert told == 3 * 10**9


def failed(missing: list[object], *publishers: Counted) -> Failed:
    return Failed(event="failed", reason="endpoints-missing", missing=missing, counted=list(publishers))


def test_what_each_side_counted_is_said_against_what_it_expects(tmp_path: Path) -> None:
    plans = plans_of(tmp_path, "pipeline-3")
    (source,), (relay,) = plans[0].nodes, plans[1].nodes
    (writer,), (reader,) = source.writers, relay.readers
    missing = {"node": relay.name, "reader": 0, "topic": reader.topic, "streams": list(reader.streams)}
    heard = f"{relay.name} on {reader.topic} heard 0 of 1 publishers"
    publisher = Counted(node=source.name, topic=writer.topic, stream=writer.stream, readers=0)
    counts = f"the publisher of source on {writer.topic} counts 0 of 1 readers (or can't tell)"
    assert counted(failed([missing]), plans) == heard
    assert counted(failed([missing], publisher), plans) == f"{heard}, {counts}"
    found = publisher.model_copy(update={"readers": 1})
    assert counted(failed([missing], found), plans) == heard, "it has all its readers"
    reader.streams.append(7)  # as if it expected another one, which it heard
    assert counted(failed([missing]), plans) == heard.replace("0 of 1", "1 of 2")


def test_many_counts_are_cut_and_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    plans = plans_of(tmp_path, "pipeline-3")
    name = plans[1].nodes[0].name
    missing: list[object] = [{"node": name, "reader": 0, "topic": "t", "streams": [0]}]
    said = counted(failed(missing * (COUNTS_MAX + 2)), plans)
    assert said.count(" heard 0 of 1 publishers") == COUNTS_MAX and said.endswith(", and 2 more")
    nonsense: list[object] = ["x", {}, {"node": [], "reader": {}, "streams": []}, {"node": name, "reader": 0}]
    assert counted(failed(nonsense), plans) == ""
