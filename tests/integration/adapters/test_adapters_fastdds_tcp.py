# SPDX-License-Identifier: Apache-2.0
"""Over TCP the participants of Fast DDS find each other, and one that lost a connection does so after all."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from campaign_support import run_cells
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import run_private

DIRECTORY = "/dev/shm/lagometer"
# Listens as one would that came before and never answers, until the participant has been recreated.
MUTE = """
import json, pathlib, socket, sys, time

def numbers_drawn():
    try:
        return json.loads(file.read_text())["next"]
    except (KeyError, ValueError):  # while it is written
        return 0

file = pathlib.Path(sys.argv[1])
listening = socket.create_server(("127.0.0.1", 5100))
member = {"domain": 0, "number": 0, "process": 0, "participant": "", "leaves": False}
member |= {"port": 5100, "logical_port": 7410}
file.write_text(json.dumps({"next": 1, "next_port": 5101, "members": [member]}))
while numbers_drawn() < 3:
    time.sleep(0.01)
"""
BESIDE_ONE_MUTE = """
mkdir -p "$2"
"$0" -c "$1" "$2/fastdds-tcp.json" > /dev/null 2>&1 &
until [ -s "$2/fastdds-tcp.json" ]; do sleep 0.01; done
shift 2
exec "$@"
"""


@pytest.fixture(autouse=True)
def _fastdds() -> None:
    need("netns")
    need("fastdds")


def test_processes_find_each_other_over_tcp(build: Path, tmp_path: Path) -> None:
    matrix = {
        "adapter": ["fastdds"],
        "workload": ["pipeline-8"],
        "rate": ["10Hz"],
        "reliability": ["reliable"],
        "placement": ["process-per-node"],
    }
    rows = run_cells(build, tmp_path, matrix, options={"fastdds": {"transport": "tcp"}})
    whole = rows.filter(pl.col("edge") == "end-to-end")
    assert (whole["n"] == whole["sent"]).all()
    assert (whole["n"] > 0).all()


def test_a_participant_whose_peer_does_not_answer_over_tcp_is_made_anew(build: Path) -> None:
    wrap = ("sh", "-c", BESIDE_ONE_MUTE, sys.executable, MUTE, DIRECTORY)
    given = plan(adapter_library("fastdds", build), DIRECTORY, pipeline("waitset"))
    given["adapters"][0]["options"] = {"transport": "tcp"}
    (said,) = run_private(build, [given], wrap=wrap)
    assert said.code == 0, said.events[-1:]
    objects = {each["object"].split()[0]: each["effective"] for each in said.event("ready")["settings"]}
    settings = objects["context"]["settings"]
    assert settings["participant_id"]["value"] == 2
    assert settings["tcp_listening_port"]["value"] == 5102


def test_two_domains_over_tcp_do_not_hear_each_other(build: Path) -> None:
    nodes = [
        node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("same", 1, [reader("t", [0])], [], [any_message()], "waitset"),
        node("other", 2, [reader("t", [], context=1)], [], [any_message()], "waitset"),
    ]
    both = plan(adapter_library("fastdds", build), DIRECTORY, nodes)
    both["adapters"][0]["options"] = {"transport": "tcp"}
    both["contexts"].append({"adapter": 0, "domain": 1, "name": "other"})
    (said,) = run_private(build, [both])
    assert said.code == 0, said.events[-1:]
    received = {each["node"]: each["received"] for each in said.event("done")["readers"]}
    assert received[1] > 20
    assert received[2] == 0
