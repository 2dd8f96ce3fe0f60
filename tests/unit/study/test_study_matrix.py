# SPDX-License-Identifier: Apache-2.0
"""From studies to cells: ids, exclusions with reasons, selection, options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_adapters import write_adapters

from lagometer.errors import BadInput, SetupMissing
from lagometer.study import Adapter, Expansion, Study, expand, load_study, select, study_from_mapping
from lagometer.study.cell import Excluded
from lagometer.study.factors import FACTORS, PART
from lagometer.study.matrix import check_options, select_excluded
from lagometer.study.sidecar import Limits

# A shared machine may be slow; that is no failure.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
STUDIES = Path(__file__).resolve().parents[3] / "studies"
CPUS = (0, 1)


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


ROS: dict[str, Any] = {"adapter": "cyclonedds"}  # it has the messages of ROS 2


def study(matrix: dict[str, Any], **top: Any) -> Study:
    return study_from_mapping(
        {"name": "test", "matrix": {"adapter": "shm", "workload": "pipeline-3", **matrix}, **top},
        source="test",
    )


def reason(matrix: dict[str, Any], adapters: dict[str, Adapter], cpus: tuple[int, ...] = CPUS) -> str:
    """Why the one cell of this matrix is excluded; empty if it is not."""
    expansion = expand(study(matrix), adapters, cpus)
    assert len(expansion.cells) + len(expansion.excluded) == 1
    return expansion.excluded[0].reason if expansion.excluded else ""


def ids(expansion: Expansion) -> list[str]:
    return [cell.id for cell in expansion.cells]


def test_tiny_is_the_study_of_the_contract(adapters: dict[str, Adapter]) -> None:
    tiny = load_study(STUDIES / "tiny.yaml")
    expansion = expand(tiny, {**adapters}, CPUS)
    assert "cyclonedds/pipeline-3/64B/200Hz/reliable/process-per-node" in ids(expansion)
    assert "cyclonedds+fastdds/pipeline-3/32KB/200Hz/best_effort/process-per-node" in ids(expansion)
    assert {item.cell.split("/")[0] for item in expansion.excluded} == {"null", "udp"}
    assert len(expansion.cells) + len(expansion.excluded) == 24
    assert len(expansion.cells) == 18


def test_quick_takes_at_most_three_minutes() -> None:
    quick = load_study(STUDIES / "quick.yaml")
    cells = 1
    for values in quick.matrix.values():
        cells *= len(values)
    assert cells * quick.trials * (quick.trial_ns() + 150_000_000) < 180 * 10**9


def test_an_id_holds_only_what_the_study_names(adapters: dict[str, Adapter]) -> None:
    expansion = expand(
        study({"depth": [1, 8], "domain": 3, "cpus": "1,0", "work": "busy-1ms"}), adapters, CPUS
    )
    assert ids(expansion) == [
        "shm/pipeline-3/busy-1ms/depth-1/cpus-0,1/domain-3",
        "shm/pipeline-3/busy-1ms/depth-8/cpus-0,1/domain-3",
    ]
    columns = expansion.cells[0].columns()
    assert (columns["depth"], columns["work_ns"], columns["domain"]) == (1, 1_000_000, 3)
    assert (columns["payload_bytes"], columns["rate_hz"]) == (None, None)
    assert len(columns) == len(FACTORS)


def test_ids_are_canonical_and_unique(adapters: dict[str, Adapter]) -> None:
    expansion = expand(study({"payload": ["1024B", 64], "rate": ["1000Hz", "0.5kHz"]}), adapters, CPUS)
    assert ids(expansion) == [
        f"shm/pipeline-3/{size}/{rate}" for size in ("1KB", "64B") for rate in ("1kHz", "500Hz")
    ]


def test_a_cell_has_all_that_is_needed_to_carry_it_out(adapters: dict[str, Adapter]) -> None:
    (cell,) = expand(study({"rate": "200Hz", "work": "busy-2ms", "cpus": "spread"}), adapters, CPUS).cells
    assert cell.workers == (("source",), ("relay-1",), ("sink",))
    assert [rule.period_ns for rule in cell.graph.rules] == [5_000_000, None, None]
    assert [rule.work_ns for rule in cell.graph.rules] == [0, 2_000_000, 0]
    assert [cell.worker_cpus(worker, CPUS) for worker in range(3)] == [(0,), (1,), (0,)]
    (cell,) = expand(study({"placement": "single-process", "cpus": 1}), adapters, CPUS).cells
    assert cell.workers == (("source", "relay-1", "sink"),)
    assert cell.worker_cpus(0, CPUS) == (1,)
    (cell,) = expand(study({"adapter": "cyclonedds+fastdds"}), adapters, CPUS).cells
    assert (cell.factors.publisher_adapter, cell.factors.subscriber_adapter) == ("cyclonedds", "fastdds")
    assert cell.worker_cpus(0, CPUS) == ()


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ({"adapter": "null"}, "null works only within one process, and the placement has 3"),
        ({"adapter": "null", "placement": "single-process"}, ""),
        (
            {"adapter": "null", "placement": "single-process", "dispatch": "listener"},
            "does not offer dispatch 'listener'",
        ),
        ({"adapter": "udp", "payload": 65508}, "udp carries at most 65507 B: the largest UDP datagram"),
        ({"adapter": "udp", "payload": 65507}, ""),
        ({"adapter": "udp", "reliability": "reliable"}, "(it offers: best_effort)"),
        ({"adapter": "udp", "domain": 1}, "udp has no domains"),
        ({"adapter": "udp", "domain": 0}, ""),
        ({"adapter": "shm", "depth": 257}, "shm keeps at most 256 messages: its queue"),
        ({"adapter": "shm", "depth": 256}, ""),
        ({"adapter": "shm", "depth": 257, "history": "keep_all"}, ""),
        ({"adapter": "shm", "durability": "transient_local"}, ""),
        (
            {"adapter": "shm", "durability": "transient_local", "depth": 17},
            "shm keeps at most 16 messages for late joiners: its history",
        ),
        ({"adapter": "shm", "durability": "transient_local", "history": "keep_all"}, "at most 16 messages"),
        ({"adapter": "shm+udp"}, "udp does not understand shm"),
        ({"adapter": "fastdds+cyclonedds"}, ""),
        ({"adapter": "ros2+cyclonedds"}, "cyclonedds does not understand ros2's type bytes"),
        ({"adapter": "cyclonedds+ros2"}, "cyclonedds does not understand ros2's type bytes"),
        ({"adapter": "ros2"}, ""),
        ({**ROS, "adapter": "ros2+cyclonedds", "type": "string"}, ""),
        ({"type": "fixed", "payload": "2KB"}, "the type fixed exists with 64B, 1KB, 64KB, 1MB"),
        ({"type": "fixed", "payload": "64KB"}, ""),
        ({"type": "string"}, "shm does not offer type 'string' (it offers: bytes, fixed)"),
        ({**ROS, "type": "Image", "payload": 15}, "the type Image has 16B or more, the envelope"),
        ({**ROS, "type": "string", "payload": 32}, ""),
        ({**ROS, "type": "string", "content": "zeros"}, ""),
        ({**ROS, "type": "Image", "payload": 16}, ""),
        ({**ROS, "type": "Imu"}, "the type Imu has 328B: 32 of frame_id, the rest its 37 numbers"),
        ({**ROS, "type": "Imu", "payload": 328}, ""),
        ({**ROS, "type": "PointCloud2", "payload": 40}, "the type PointCloud2 has points of 16B"),
        ({**ROS, "type": "PointCloud2", "payload": "1MB"}, ""),
        ({**ROS, "adapter": "cyclonedds+fastdds", "type": "Image"}, "fastdds does not offer type 'Image'"),
        ({"workload": "pingpong", "rate": "100Hz"}, "pingpong has no rate: a closed loop"),
        ({"workload": "pingpong"}, ""),
        ({"workload": "pingpong", "work": "busy-1ms"}, ""),
        ({"workload": "fanout-2", "work": "busy-1ms"}, "fanout-2 has no relay to do the work"),
        ({"workload": "fanout-2", "work": "none"}, ""),
        ({"rate": "0.1Hz"}, "publishes nothing within the 2s that are measured"),
        ({"cpus": "0,7"}, "CPU 7 is not available here (there are: 0-1)"),
        ({"dispatch": "poll", "scheduling": "fifo"}, "2 spinning SCHED_FIFO threads on 2 CPUs would starve"),
        ({"dispatch": "poll", "scheduling": "fifo", "workload": "pipeline-2"}, ""),
        ({"dispatch": "poll", "scheduling": "fifo", "workload": "pipeline-2", "cpus": 0}, "on 1 CPUs"),
        ({"dispatch": "poll"}, ""),
    ],
)
def test_what_cannot_exist_is_excluded_with_its_reason(
    matrix: dict[str, Any], said: str, adapters: dict[str, Adapter]
) -> None:
    found = reason(matrix, adapters)
    assert said in found
    assert bool(said) == bool(found)


def test_an_adapter_that_is_not_built_is_excluded_with_its_reason(tmp_path: Path) -> None:
    adapters = write_adapters(tmp_path, missing={"fastdds": "libfastrtps-dev is not installed"})
    assert reason({"adapter": "fastdds"}, adapters) == "not built: libfastrtps-dev is not installed"
    assert "fastdds: not built" in reason({"adapter": "cyclonedds+fastdds"}, adapters)
    (tmp_path / "shm" / "liblagometer_shm.so").unlink()
    assert "is not there; build it there" in reason({}, write_adapters_again(tmp_path))


def write_adapters_again(folder: Path) -> dict[str, Adapter]:
    from lagometer.study.adapters import load_adapter

    return {path.name: load_adapter(path) for path in folder.iterdir()}


def test_names_that_nobody_knows_are_bad_input(adapters: dict[str, Adapter]) -> None:
    with pytest.raises(BadInput, match=r"unknown adapter 'cyclondds' .did you mean 'cyclonedds'"):
        expand(study({"adapter": ["shm", "cyclondds+fastdds"]}), adapters)
    with pytest.raises(SetupMissing, match="make setup"):
        expand(study({}), {})


def test_exclude_leaves_cells_out_and_must_match(adapters: dict[str, Adapter]) -> None:
    expansion = expand(study({"payload": [64, 128]}, exclude="*/128B"), adapters, CPUS)
    assert ids(expansion) == ["shm/pipeline-3/64B"]
    assert expansion.excluded[0].reason == "left out by the study: */128B"
    with pytest.raises(BadInput, match="'\\*/1MB' matches no cell"):
        expand(study({"payload": 64}, exclude=["*/1MB"]), adapters)


def test_selection_crosses_slashes(adapters: dict[str, Adapter]) -> None:
    cells = expand(study({"adapter": ["shm", "fastdds"], "payload": [64, 128]}), adapters, CPUS).cells
    assert len(select(cells, [], [])) == 4
    assert [cell.id for cell in select(cells, ["shm*"], ["*/64B"])] == ["shm/pipeline-3/128B"]
    assert select(cells, ["shm"], []) == ()
    excluded = [Excluded(f"{name}/64B", "r") for name in ("null", "ros2")]
    assert [item.cell for item in select_excluded(excluded, ["*/64B"], ["null/*"])] == ["ros2/64B"]


def test_options_are_checked_against_the_sidecar(adapters: dict[str, Adapter]) -> None:
    given_options = {
        "cyclonedds": {"max_message_size": 65500, "transport": "udp", "loud": True, "ratio": 0.5}
    }
    check_options(study({}, options=given_options), adapters)
    for options, said in (
        (
            {"cyclonedds": {"max_mesage_size": 1}},
            "no option 'max_mesage_size' .did you mean 'max_message_size'",
        ),
        ({"cyclonedds": {"max_message_size": "big"}}, "'big' is not a whole number at least 1024"),
        ({"cyclonedds": {"max_message_size": 10}}, "'10' is not a whole number at least 1024"),
        ({"cyclonedds": {"transport": "tcp"}}, "'tcp' is not one of udp, shm"),
        ({"cyclonedds": {"transport": "upd"}}, "'upd' is not one of udp, shm.*did you mean 'udp'. which"),
        ({"cyclonedds": {"loud": "no"}}, "'no' is not true or false"),
        ({"cyclonedds": {"ratio": 2}}, "'2' is not a number at most 1"),
        ({"cyclone": {"ratio": 1}}, "unknown adapter 'cyclone' .did you mean 'cyclonedds'"),
    ):
        with pytest.raises(BadInput, match=said):
            expand(study({}, options=options), adapters)


WORDS = {
    "adapter": ["null", "shm", "udp", "cyclonedds", "fastdds", "cyclonedds+fastdds"],
    "workload": ["pingpong", "pipeline-2", "fanout-3", "fanin-2", "diamond", "sensor-fusion"],
    "work": ["none", "busy-1ms"],
    "work_spread": ["none", "normal-200us", "lognormal-0.5"],
    "payload": ["4B", "16B", "1KB", "64KB", "1MB"],
    "content": ["any", "zeros", "random"],
    "type": ["bytes", "fixed", "string", "Image", "Imu", "PointCloud2"],
    "rate": ["1Hz", "100Hz", "1kHz"],
    "schedule": ["periodic", "poisson", "burst-3", "ramp-200Hz"],
    "late": ["burst", "skip", "shift"],
    "reliability": ["best_effort", "reliable"],
    "history": ["keep_last", "keep_all"],
    "depth": [1, 16],
    "durability": ["volatile", "transient_local"],
    "deadline_period": ["none", "1s"],
    "lifespan": ["none", "50ms"],
    "liveliness": ["none", "automatic-1s", "manual-1s"],
    "partition": ["none", "left"],
    "instances": ["none", 1, 1000],
    "dispatch": ["listener", "waitset", "poll"],
    "touch": ["header", "write", "read", "write+read"],
    "profile": ["default", "matched"],
    "placement": ["process-per-node", "single-process", "groups"],
    "participants": ["per-process", "per-node"],
    "threads": ["per-node", "per-process"],
    "start": ["matched", "subscriber-first", "publisher-first"],
    "scheduling": ["other", "fifo"],
    "cpus": ["any", "spread", "0", "0,1"],
    "network": ["private", "host"],
    "domain": [0, 7],
    "bridge": ["none", "zenoh-dds", "ddsrouter"],
    "security": ["none", "sign", "encrypt"],
    "interference": ["none", "cpu", "io-2", "network"],
    "tuning": ["none", "latency"],
    "hosts": ["here"],
    "link": ["none"],
    "variant": ["none"],
}


def matrices() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            name: st.lists(st.sampled_from(WORDS[name]), min_size=1, max_size=2, unique=True)
            for name in ("adapter", "workload")
        },
        optional={
            name: st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
            for name, values in WORDS.items()
            if name not in ("adapter", "workload")
        },
    )


@PATIENT
@given(matrix=matrices())
def test_every_combination_is_a_cell_or_excluded_with_a_reason(
    matrix: dict[str, Any], adapters: dict[str, Adapter]
) -> None:
    # A corner of large matrices is enough: every factor beyond the sixth keeps its first value only.
    matrix = {
        name: values if place < 6 else values[:1] for place, (name, values) in enumerate(matrix.items())
    }
    expansion = expand(study(matrix), adapters, CPUS)
    names = ids(expansion) + [item.cell for item in expansion.excluded]
    product = 1
    for values in matrix.values():
        product *= len(values)
    assert len(names) == product == len(set(names))
    assert all(item.reason for item in expansion.excluded)
    for cell in expansion.cells:
        assert len(cell.id.split("/")) == len(matrix) == len(cell.named)
        assert sorted(node for worker in cell.workers for node in worker) == sorted(cell.graph.node_names)
        assert all(rule.work_ns is not None for rule in cell.graph.rules)
        assert all(rule.period_ns for rule in cell.graph.rules if rule.trigger == "timer")


def test_words_of_the_generator_are_all_factors() -> None:
    assert list(WORDS) == [factor.name for factor in FACTORS if factor.name != PART]


def limited(adapters: dict[str, Adapter], **limits: Any) -> dict[str, Adapter]:
    """The adapters, of which shm has other limits."""
    sidecar = adapters["shm"].sidecar.model_copy(update={"limits": Limits(**limits)})
    return {**adapters, "shm": replace(adapters["shm"], sidecar=sidecar)}


@pytest.mark.parametrize(
    ("limits", "workload", "said"),
    [
        (
            {"topics_max": 2, "topics_max_reason": "two names"},
            "pipeline-4",
            "shm has at most 2 topics at once, and pipeline-4 has 3: two names",
        ),
        ({"topics_max": 2}, "pipeline-3", ""),
        (
            {"endpoints_max": 4, "endpoints_max_reason": "its table"},
            "fanout-4",
            "shm has at most 4 endpoints on a topic, and 't0' has 5: its table",
        ),
        ({"endpoints_max": 5}, "fanout-4", ""),
    ],
)
def test_more_topics_or_endpoints_than_declared_are_excluded(
    adapters: dict[str, Adapter], limits: dict[str, Any], workload: str, said: str
) -> None:
    assert reason({"workload": workload}, limited(adapters, **limits)) == said


@pytest.mark.parametrize(
    ("matrix", "instead"),
    [
        ({"adapter": "shm", "depth": 300}, ("--depth 256",)),
        ({"adapter": "shm", "depth": 32, "durability": "transient_local"}, ("--depth 16",)),
        ({"adapter": "udp", "payload": "1MB"}, ("--payload 65507B",)),
        (
            {"adapter": "udp", "reliability": "reliable", "domain": 3},
            ("--reliability best_effort", "--domain 0"),
        ),
        ({"adapter": "null", "placement": "process-per-node"}, ("--placement single-process",)),
        ({"adapter": "null", "placement": "single-process", "dispatch": "listener"}, ("--dispatch waitset",)),
        ({"adapter": "shm", "cpus": "7"}, ()),
    ],
)
def test_what_a_limit_excludes_says_what_to_ask_for_instead(
    adapters: dict[str, Adapter], matrix: dict[str, Any], instead: tuple[str, ...]
) -> None:
    (excluded,) = expand(study(matrix), adapters, CPUS).excluded
    assert excluded.instead == instead


@pytest.mark.parametrize(
    ("placement", "participants", "seconds"),
    [
        ("process-per-node", "per-process", 5.0),
        ("single-process", "per-process", 0.5),
        ("single-process", "per-node", 5.0),
    ],
)
def test_the_wait_for_discovery_grows_with_participants(
    placement: str, participants: str, seconds: float, adapters: dict[str, Adapter]
) -> None:
    asked = study({"workload": "pipeline-10", "placement": placement, "participants": participants})
    (cell,) = expand(asked, adapters, CPUS).cells
    endpoints = 9 + 9  # nine topics, each with a publisher and a subscriber
    assert asked.discovery_ns(cell) == round((10 + seconds) * 1e9) + endpoints * 20_000_000
