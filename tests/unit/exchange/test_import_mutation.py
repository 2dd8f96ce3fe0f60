# SPDX-License-Identifier: Apache-2.0
"""Damaged results of other tools: an import says what is wrong and where, or gives figures that can be;
it never ends in an error of another kind.

The seed is printed; LAGOMETER_SEED repeats a run, LAGOMETER_MUTATIONS sets how many.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from import_samples import (
    ddsperf_text,
    hlog_text,
    latency_test_raw,
    latency_test_table,
    ros2_performance_text,
    rtiperftest_csv,
    rtiperftest_samples,
)
from performance_test_model import V1_0, V1_1, V1_4, V2_3, Second, json_text, log_text

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.formats import FORMATS, import_files
from lagometer.exchange.imports.trial import Options
from lagometer.store.reader import open_campaign

MUTATIONS = int(os.environ.get("LAGOMETER_MUTATIONS", "600"))
SEED = int(os.environ.get("LAGOMETER_SEED", random.SystemRandom().randrange(1 << 32)))
MICROSECONDS = [20 + (place * 7919) % 97 for place in range(120)]
NANOSECONDS = [each * 1000 for each in MICROSECONDS]
SECONDS = [Second(NANOSECONDS[:40], lost=2), Second(NANOSECONDS[40:80]), Second(NANOSECONDS[80:])]
SAMPLES = {
    "csv-1.0": log_text(V1_0, SECONDS),
    "csv-1.4": log_text(V1_4, SECONDS * 3, ignored=True),
    "csv-2.3": log_text(V2_3, SECONDS),
    "json-1.1": json_text(V1_1, SECONDS),
    "json-2.3": json_text(V2_3, SECONDS),
    "hlog-v0": hlog_text([("", 1.0, NANOSECONDS)], 0, digits=2, unit=1024),
    "hlog-v1": hlog_text([("A", 1.0, NANOSECONDS), ("", 2.0, NANOSECONDS)], 1, digits=2, unit=1024),
    "hlog-v2": hlog_text([("A", 1.5, NANOSECONDS)], 2, head=["#[StartTime: 1441812279.474 (seconds)]"]),
    "table": latency_test_table({16: [each / 1 for each in MICROSECONDS], 64: [1.0] * 19 + [1234.5]}),
    "raw": latency_test_raw({16: [each / 3 for each in MICROSECONDS]}),
    "rtiperftest": rtiperftest_csv({32: MICROSECONDS[:40], 64: MICROSECONDS[40:]}),
    "rti-samples": rtiperftest_samples(MICROSECONDS),
    "ddsperf": ddsperf_text([NANOSECONDS[:60], NANOSECONDS[60:]], lost=3),
    "ros2": ros2_performance_text([("mobile", "amazon", MICROSECONDS, 0, 3), ("rome", "nile", [], 0, 0)]),
    "ros2-columns": ros2_performance_text([("mobile", "amazon", MICROSECONDS, 2, 3)], csv=False),
}
ODD = (
    *(
        "",
        "-",
        "-1",
        "0",
        "nan",
        "-nan",
        "inf",
        "1e400",
        "1e-400",
        "99999999999999999999",
        "0x10",
        "½",
        "١٢",
        "1_0",
    ),
    *(
        "NaN",
        "Infinity",
        "null",
        "true",
        "{}",
        "[]",
        '""',
        '"\\ud800"',
        "\x00",
        "é" * 40,
        "9" * 400,
        "9" * 5000,
    ),
    *(
        "../../..",
        "%s",
        ",",
        "[" * 3000,
        "2" * 20,
        "1,5",
        "1e18",
        "4611686018427387904",
        "9223372036854775808",
    ),
)


def damaged(chance: random.Random, text: str) -> bytes:
    """Cut, spattered, with lines or words gone, doubled, moved or replaced."""
    what = chance.randrange(8)
    raw = bytearray(text.encode())
    if what == 0:
        return bytes(raw[: chance.randrange(len(raw))])
    if what == 1:
        for _ in range(chance.randrange(1, 12)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        return bytes(raw)
    if what == 2:
        at = chance.randrange(len(raw))
        return bytes(raw[:at] + raw[at + chance.randrange(1, 60) :])
    lines = text.split("\n")
    place = chance.randrange(len(lines))
    if what == 3:
        del lines[place]
    elif what == 4:
        lines.insert(chance.randrange(len(lines)), lines[place])
    elif what == 5:
        other = chance.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        words = list(re.finditer(r"[^\s,:]+", text))
        for word in sorted(chance.sample(words, chance.choice((1, 1, 2, 3))), key=lambda each: -each.start()):
            text = text[: word.start()] + chance.choice(ODD) + text[word.end() :]
        return text.encode("utf-8", "surrogatepass")
    return "\n".join(lines).encode()


def attempt(path: Path, out: Path, name: str | None) -> str | None:
    """The message of the refusal, or nothing if figures came of it, which then have been looked at."""
    shutil.rmtree(out, ignore_errors=True)
    try:
        import_files([path], out, name, Options("ns" if b"jHiccup" not in path.read_bytes() else None))
    except ExchangeError as error:
        return str(error)
    campaign = open_campaign(out)
    assert json.loads((out / "manifest.json").read_text())["imported"]["absent"]
    for row in campaign.cells.to_dicts():
        assert row["n"] >= 1 and row["warnings"][0].startswith("imported: ")
        assert "/../" not in row["cell"] and not row["cell"].startswith("/")
        figures = [
            row[f"latency_{each}_ns"] for each in ("min", "p25", "p50", "p75", "p90", "p99", "p999", "max")
        ]
        known = [each for each in figures if each is not None]
        assert known == sorted(known), row
        for count in ("sent", "lost"):
            assert row[count] is None or row[count] >= 0
    return None


@pytest.mark.by_turn
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_damaged_file_is_refused_or_gives_figures_that_can_be(sample: str, tmp_path: Path) -> None:
    print(f"LAGOMETER_SEED={SEED}")
    chance = random.Random(f"{SEED}/{sample}")
    path, out = tmp_path / "damaged.txt", tmp_path / "out"
    path.write_text(SAMPLES[sample], encoding="utf-8")
    assert attempt(path, out, None) is None  # what is whole is imported
    refused = 0
    for _ in range(max(1, MUTATIONS // len(SAMPLES))):
        content = damaged(chance, SAMPLES[sample])
        path.write_bytes(content)
        name = chance.choice([None, None, None, *(each.name for each in FORMATS)])
        message = attempt(path, out, name)
        if message is not None:
            refused += 1
            assert message.startswith(str(path)) and len(message.split(": ", 1)[1]) > 10, message
    assert refused > 0


@pytest.mark.by_turn
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_file_that_was_cut_off_is_refused_or_shorter(sample: str, tmp_path: Path) -> None:
    """At twenty places: what it gives then is of fewer messages or of as many, never of more."""
    path, out = tmp_path / "cut.txt", tmp_path / "out"
    path.write_text(SAMPLES[sample], encoding="utf-8")
    assert attempt(path, out, None) is None
    whole = open_campaign(out).cells["n"].sum()
    raw = SAMPLES[sample].encode()
    for part in range(20):
        path.write_bytes(raw[: len(raw) * part // 20])
        message = attempt(path, out, None)
        if message is None:
            assert open_campaign(out).cells["n"].sum() <= whole
        else:
            assert message.startswith(str(path))


# What follows the last line with figures.
AFTER = {
    "rtiperftest": "\nOne-way",
    "ddsperf": "[100] 2.000  rss",
    "ros2": "\nPublishers",
    "ros2-columns": "\nPublishers",
}


def figures(path: Path, out: Path) -> list[dict[str, Any]] | None:
    """All figures of an import, or nothing if it is refused."""
    if attempt(path, out, None) is not None:
        return None
    return open_campaign(out).cells.to_dicts()


@pytest.mark.by_turn
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_number_that_was_cut_is_no_figure(sample: str, tmp_path: Path) -> None:
    """Cut within its last line, a file is refused, or gives what it gives with or without that line."""
    path, out = tmp_path / "cut.txt", tmp_path / "out"
    whole = SAMPLES[sample].split(AFTER.get(sample, "\0"))[0].rstrip("\n") + "\n"
    start = whole.rstrip("\n").rfind("\n") + 1
    allowed = []
    for text in (whole, whole[:start]):
        path.write_text(text, encoding="utf-8")
        allowed.append(figures(path, out))
    assert allowed[0] is not None
    for end in range(max(start + 1, len(whole) - 200), len(whole)):
        path.write_text(whole[:end], encoding="utf-8")
        assert figures(path, out) in (None, *allowed), whole[start:end]
