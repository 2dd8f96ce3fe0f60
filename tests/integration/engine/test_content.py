# SPDX-License-Identifier: Apache-2.0
"""What payloads are filled with, in whole campaigns: seen by the adapter that is to send them.

Its buffers are dirty before, so that what is not written shows.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import polars as pl
import pytest
from campaign_support import lagometer, programs, write_study
from needs import need
from toy_campaign import CELL, write_toy

BYTES = 1_000
ENVELOPE = struct.Struct("<HBBIQ")
RECORDED = bytes(range(1, 252))  # a number of bytes that no payload is a multiple of
SEED = 7
MASK = 2**64 - 1
IN_PYTHON = """
class Witness(ToyWriter):
    def borrow(self, size: int) -> bytearray:
        super().borrow(size)[:] = b"\\xaa" * size
        return self._buffer

    def commit(self) -> bool:
        if self._buffer[3] == 0:  # data, and no probe
            with open(os.environ["LAGOMETER_TEST_WITNESS"], "ab") as file:
                file.write(self._buffer)
        return super().commit()


ToyWriter = Witness
"""


def random_bytes(count: int) -> bytes:
    """The first so many of SplitMix64."""
    words, state = [], SEED
    for _ in range(count // 8 + 1):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        words.append(struct.pack("<Q", word ^ (word >> 31)))
    return b"".join(words)[:count]


def expected(content: str, sequence: int) -> bytes:
    """Each message goes on where the last one ended."""
    begin, end = sequence * BYTES, (sequence + 1) * BYTES
    if content == "random":
        return random_bytes(end)[begin:]
    if content.startswith("recorded"):
        return (RECORDED * (end // len(RECORDED) + 1))[begin:end]
    return (b"\0" if content == "zeros" else b"\xaa") * BYTES


@pytest.mark.by_turn
@pytest.mark.parametrize("worker", ["in C++", "in Python"])
@pytest.mark.parametrize("content", ["any", "zeros", "random", "recorded-lidar.bin"])
def test_payloads_are_filled_as_the_study_says(
    build: Path, tmp_path: Path, worker: str, content: str
) -> None:
    need("netns")
    library = build / "tests" / "adapters" / "liblagometer_witness.so"
    toy = write_toy(tmp_path, IN_PYTHON, library if worker == "in C++" else None)
    (tmp_path / "lidar.bin").write_bytes(RECORDED)
    matrix = {**CELL, "workload": "pipeline-2", "rate": "20Hz", "payload": f"{BYTES}B"}
    matrix |= {"content": content, "touch": "header"}
    study = write_study(tmp_path, matrix=matrix, seed=SEED, machine_floor="off")
    run = ("run", str(study), "--out", str(tmp_path / "out"), "--json", "--no-report")
    witness = {"LAGOMETER_TEST_WITNESS": str(tmp_path / "sent")}
    _, output, errors = lagometer(tmp_path, *run, environment={**programs(build), **toy, **witness})
    (reasons,) = [each["reasons"] for each in json.loads(output)["failures"]] or [[]]
    assert all(reason.startswith("rate-missed") for reason in reasons), (reasons, errors)
    sent = (tmp_path / "sent").read_bytes()
    payloads = [sent[at : at + BYTES] for at in range(0, len(sent), BYTES)]
    for number, payload in enumerate(payloads):
        assert ENVELOPE.unpack(payload[: ENVELOPE.size]) == (0x4C67, 1, 0, 0, number)
        assert payload[ENVELOPE.size :] == expected(content, number)[ENVELOPE.size :], number
    samples = pl.concat(pl.read_parquet(path) for path in (tmp_path / "out" / "samples").rglob("0.parquet"))
    edge = samples.filter(pl.col("edge") == "source→sink")
    assert len(payloads) == edge.height > 3
    assert not edge["corrupted"].any()


TOPICS = """
topics: {x: {content: zeros}, y: {content: random}, z: {}}
nodes:
  source: {trigger: timer, publishes: [x, y, z]}
  sink: {trigger: any, subscribes: [x, y, z]}
"""


@pytest.mark.parametrize("worker", ["in C++", "in Python"])
def test_each_topic_has_its_own_content_and_its_reader_takes_it_for_whole(
    build: Path, tmp_path: Path, worker: str
) -> None:
    need("netns")
    library = build / "tests" / "adapters" / "liblagometer_witness.so"
    toy = write_toy(tmp_path, IN_PYTHON, library if worker == "in C++" else None)
    (tmp_path / "topics.yaml").write_text(TOPICS)
    (tmp_path / "lidar.bin").write_bytes(RECORDED)
    matrix = {**CELL, "workload": "topics.yaml", "rate": "20Hz", "payload": f"{BYTES}B"}
    matrix |= {"content": "recorded-lidar.bin", "touch": "header"}
    study = write_study(tmp_path, matrix=matrix, seed=SEED, machine_floor="off")
    run = ("run", str(study), "--out", str(tmp_path / "out"), "--json", "--no-report")
    witness = {"LAGOMETER_TEST_WITNESS": str(tmp_path / "sent")}
    lagometer(tmp_path, *run, environment={**programs(build), **toy, **witness})
    sent = (tmp_path / "sent").read_bytes()
    contents = ("zeros", "random", "recorded-lidar.bin")  # by stream; z follows the cell
    for at in range(0, len(sent), BYTES):
        stream, number = ENVELOPE.unpack(sent[at : at + ENVELOPE.size])[3:]
        filled = sent[at + ENVELOPE.size : at + BYTES]
        assert filled == expected(contents[stream], number)[ENVELOPE.size :], (stream, number)
    samples = pl.concat(pl.read_parquet(path) for path in (tmp_path / "out" / "samples").rglob("0.parquet"))
    edges = samples.filter(pl.col("edge").cast(str).str.starts_with("source→sink"))
    assert edges["edge"].n_unique() == 3
    assert not edges["corrupted"].any()
