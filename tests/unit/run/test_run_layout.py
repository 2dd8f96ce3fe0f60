# SPDX-License-Identifier: Apache-2.0
"""From cells to plans: who gets which endpoints, contexts and room for records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError
from study_adapters import write_adapters

from lagometer.run.facts import edge_specs
from lagometer.run.worker.layout import RECORD_BYTES, RECORDS_BYTES_MAX, stream_rates_hz, worker_plans
from lagometer.run.worker.plan import CAPACITY_MAX, Plan
from lagometer.run.worker.plan_schema import schema_text
from lagometer.study import Cell, expand, study_from_mapping

ROOT = Path(__file__).resolve().parents[3]


def plans_of(tmp_path: Path, top: dict[str, Any] | None = None, **matrix: Any) -> tuple[Cell, list[Plan]]:
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": "pipeline-3", **matrix}, **(top or {})}
    study = study_from_mapping(mapping, "test")
    cell = expand(study, adapters, cpus=(0, 1)).cells[0]
    return cell, worker_plans(study, cell, 0, adapters)


def test_the_schema_in_the_repository_is_that_of_the_models() -> None:
    assert (ROOT / "schema" / "plan.schema.json").read_text(encoding="utf-8") == schema_text(), (
        "run: python -m lagometer.run.worker.plan_schema > schema/plan.schema.json"
    )


def test_a_plan_is_one_line_that_its_schema_accepts(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, history="keep_all")
    for plan in plans:
        line = plan.line()
        assert line.count(b"\n") == 1
        value = json.loads(line)
        jsonschema.validate(value, json.loads(schema_text()))
        assert Plan.model_validate_json(line) == plan
        for node in value["nodes"]:
            for endpoint in node["readers"] + node["writers"]:
                assert "depth" not in endpoint["qos"]


def test_the_pages_example_is_a_valid_plan() -> None:
    page = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    text = page.split("```json\n")[1].split("```")[0]
    qos = '{"reliability":"reliable","history":"keep_last","depth":16,"durability":"volatile"}'
    Plan.model_validate_json(text.replace("{…}", qos))


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path)
    value = json.loads(plans[0].line())
    value["nodes"][0]["rules"][0]["periodns"] = 1
    with pytest.raises(ValidationError, match="periodns"):
        Plan.model_validate(value)


def test_a_pipeline_has_one_worker_for_each_node(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, rate="200Hz", payload="32KB", placement="process-per-node")
    assert [plan.worker.name for plan in plans] == ["source", "relay-1", "sink"]
    source, relay, sink = (plan.nodes[0] for plan in plans)
    assert source.rules[0].model_dump()["period_ns"] == 5_000_000
    assert [len(node.readers) for node in (source, relay, sink)] == [0, 1, 1]
    assert [len(node.writers) for node in (source, relay, sink)] == [1, 1, 0]
    assert relay.readers[0].streams == [source.writers[0].stream]
    assert sink.readers[0].topic == relay.writers[0].topic != source.writers[0].topic
    assert all(plan.contexts[0].adapter == 0 and len(plan.contexts) == 1 for plan in plans)
    assert source.writers[0].payload_bytes == 32768
    # 2.5 s at 200 Hz are 500 messages
    assert 500 < source.writers[0].capacity < 2500


def test_a_mixed_pair_has_a_context_of_each_where_both_are_needed(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, adapter="cyclonedds+fastdds")
    names = [[plan.adapters[context.adapter].name for context in plan.contexts] for plan in plans]
    assert names == [["cyclonedds"], ["cyclonedds", "fastdds"], ["fastdds"]]
    relay = plans[1].nodes[0]
    assert (relay.readers[0].context, relay.writers[0].context) == (1, 0)
    assert plans[2].nodes[0].readers[0].context == 0
    assert plans[0].adapters[0].network == {"loopback": True, "peers": 4}


def test_one_process_shares_one_context(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, adapter="null", placement="single-process")
    assert len(plans) == 1
    assert [node.name for node in plans[0].nodes] == ["source", "relay-1", "sink"]
    assert len(plans[0].contexts) == 1


def test_scheduling_and_cpus_are_passed_on(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, scheduling="fifo", cpus="0,1")
    assert plans[0].scheduling.model_dump() == {
        "policy": "fifo",
        "priority": 20,
        "cpus": [0, 1],
        "lock_memory": True,
    }


def test_each_worker_and_trial_has_another_heap_and_the_seed_decides_which(tmp_path: Path) -> None:
    adapters = write_adapters(tmp_path)

    def offsets(seed: int) -> list[list[int]]:
        mapping = {"name": "x", "seed": seed, "matrix": {"adapter": "shm", "workload": "pipeline-3"}}
        study = study_from_mapping(mapping, "test")
        cell = expand(study, adapters, cpus=(0, 1)).cells[0]
        trials = [worker_plans(study, cell, trial, adapters) for trial in range(40)]
        return [[plan.heap_offset_bytes for plan in plans] for plans in trials]

    first = offsets(1)
    drawn = [offset for trial in first for offset in trial]
    assert all(offset % 16 == 0 and 0 <= offset < 4096 for offset in drawn)
    assert len(set(drawn)) > 80, "120 draws of 256 places"
    assert min(drawn) < 512
    assert max(drawn) >= 4096 - 512
    assert offsets(1) == first
    assert offsets(2) != first


def test_options_have_the_adapters_types(tmp_path: Path) -> None:
    _, plans = plans_of(
        tmp_path, {"options": {"cyclonedds": {"max_message_size": "2048"}}}, adapter="cyclonedds"
    )
    assert plans[0].adapters[0].options == {"max_message_size": 2048}


def test_the_hosts_network_is_left_to_the_middleware(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, network="host")
    assert plans[0].adapters[0].network == {}


def test_fan_in_adds_rates_and_closed_loops_are_bounded(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, workload="fanin-5", rate="1kHz")
    assert set(stream_rates_hz(cell.graph).values()) == {1000.0}
    sink = next(plan.nodes[0] for plan in plans if plan.nodes[0].readers)
    assert sum(reader.capacity for reader in sink.readers) > 5 * 2500
    _, loop = plans_of(tmp_path, workload="pingpong")
    assert 100_000 <= loop[0].nodes[0].writers[0].capacity <= 1_000_000


def test_the_memory_of_a_trial_is_bounded(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, {"duration": "1h"}, workload="fanout-9", rate="1MHz")
    endpoints = [each for plan in plans for node in plan.nodes for each in (*node.readers, *node.writers)]
    assert sum(each.capacity for each in endpoints) * RECORD_BYTES <= RECORDS_BYTES_MAX
    assert all(1 <= each.capacity <= CAPACITY_MAX for each in endpoints)


def test_edges_know_their_readers(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, workload="diamond")
    for edge in edge_specs(cell):
        node = next(node for plan in plans for node in plan.nodes if node.index == edge.receiver_node)
        assert edge.stream in node.readers[edge.reader].streams
        assert node.name == edge.receiver


def test_a_closed_loop_knows_its_answers_by_their_numbers(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, workload="pingpong")
    rules = {node.name: node.rules[0].model_dump() for plan in plans for node in plan.nodes}
    assert rules["pong"]["echo"] is True
    assert "echo" not in rules["ping"]
    _, plans = plans_of(tmp_path, workload="pipeline-3")
    echoes = [
        rule.get("echo") for plan in plans for node in plan.nodes for rule in node.model_dump()["rules"]
    ]
    assert echoes == [None, False, False]
