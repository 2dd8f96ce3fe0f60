# SPDX-License-Identifier: Apache-2.0
"""The camera of `paul-2024`: its sizes and times are those of the recording that is named in the files."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from needs import ROOT, shared_data

from lagometer.study import discover_adapters, expand, load_study

CHUNK, MESSAGE = 0x06, 0x05  # MCAP's opcodes
ARCHIVE = "bags/d435_pointcloud_mcap"


def records(content: memoryview) -> Iterator[tuple[int, memoryview]]:
    place = 0
    while place + 9 <= len(content):
        size = struct.unpack_from("<Q", content, place + 1)[0]
        yield content[place], content[place + 9 : place + 9 + size]
        place += 9 + size


def messages(content: memoryview) -> Iterator[tuple[int, memoryview]]:
    """When each message was logged, and its CDR."""
    for code, body in records(content):
        if code == CHUNK:
            name_bytes = struct.unpack_from("<I", body, 28)[0]
            assert name_bytes == 0, "compressed"
            yield from messages(body[40:])
        elif code == MESSAGE:
            yield struct.unpack_from("<Q", body, 6)[0], body[22:]


def numbers(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines() if not line.startswith("#")]


def test_sizes_and_times_are_those_of_the_recording() -> None:
    (packed,) = shared_data(ARCHIVE).glob("*.tar.xz")
    with tarfile.open(packed) as archive:
        (name,) = [each for each in archive.getnames() if each.endswith(".mcap")]
        file = archive.extractfile(name)
        assert file is not None
        content = file.read()
    assert content.startswith(b"\x89MCAP0\r\n")
    found = sorted(messages(memoryview(content)[8:]), key=lambda each: each[0])
    # `data` is led by its length, and followed by one byte, is_dense, and padding to 4 B. A point has 16 B.
    sizes = numbers(ROOT / "workloads" / "d435-sizes.txt")
    assert len(sizes) == len(found) == 263
    for size, (_, cdr) in zip(sizes, found, strict=True):
        assert struct.unpack_from("<I", cdr, (len(cdr) - 1) // 4 * 4 - size - 4)[0] == size and size % 16 == 0
    times = [logged_ns for logged_ns, _ in found]
    assert numbers(ROOT / "studies" / "d435-intervals.txt") == [b - a for a, b in pairwise(times)]


def test_the_study_has_the_recorded_camera_as_a_workload() -> None:
    study = load_study(ROOT / "studies" / "paul-2024.yaml")
    for cell in expand(study, discover_adapters({}), cpus=(0, 1)).cells:
        if not cell.id.startswith("camera/"):
            continue
        sizes = {topic: traffic.sizes_bytes for topic, traffic in cell.traffic.items()}
        assert set(sizes) == {"cloud", "echo"} and all(max(each) == 684_352 for each in sizes.values())
        assert cell.factors.schedule == "recorded-d435-intervals"
