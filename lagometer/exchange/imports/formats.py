# SPDX-License-Identifier: Apache-2.0
"""The formats that can be imported, and the detection of a file's format from its content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports import (
    ddsperf,
    hlog,
    latency_test,
    performance_test,
    ros2_performance,
    rtiperftest,
)
from lagometer.exchange.imports.campaign import write_campaign
from lagometer.exchange.imports.source import Source
from lagometer.exchange.imports.trial import Imported, Options


@dataclass(frozen=True)
class Format:
    """A format. name: the value of `--format`; what: its description in a list for people."""

    name: str
    what: str
    recognises: Callable[[Source], bool]
    read: Callable[[Sequence[Source], Options], Imported]


FORMATS = (
    Format(
        "performance-test",
        "logs of Apex.AI performance_test 1.0 to 2.3, CSV or JSON",
        performance_test.recognises,
        performance_test.read,
    ),
    Format("hlog", "logs of HdrHistogram, encodings V0 to V2", hlog.recognises, hlog.read),
    Format(
        "latency-test",
        "Fast DDS's LatencyTest: its output, and the file of --export_raw_data",
        latency_test.recognises,
        latency_test.read,
    ),
    Format(
        "rtiperftest",
        "RTI Perftest's publisher: -outputFormat csv, and the file of -latencyFile",
        rtiperftest.recognises,
        rtiperftest.read,
    ),
    Format("ddsperf", "the output of Cyclone DDS's ddsperf", ddsperf.recognises, ddsperf.read),
    Format(
        "ros2-performance",
        "latency_all.txt of iRobot's ros2-performance",
        ros2_performance.recognises,
        ros2_performance.read,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """The result of an import. joined: files that became one trial."""

    format: str
    tool: str
    cells: Sequence[str]
    trials: int
    joined: Sequence[Sequence[str]]
    notes: Sequence[str]


def import_files(
    paths: Sequence[Path], directory: Path, name: str | None = None, options: Options | None = None
) -> Outcome:
    """Writes a campaign of these files into `directory`. `name`: their format; guessed if not given.

    Raises ExchangeError, OSError.
    """
    sources = _sources(paths)
    chosen = _named(name) if name is not None else _guessed(sources)
    imported = chosen.read(sources, options or Options())
    cells = write_campaign(chosen.name, sources, imported, directory)
    joined = [
        [source.path.name for source in trial.files] for trial in imported.trials if len(trial.files) > 1
    ]
    return Outcome(chosen.name, imported.tool, cells, len(imported.trials), joined, imported.notes)


def _sources(paths: Sequence[Path]) -> list[Source]:
    """Reads all files, so that one error names every unreadable file."""
    sources, errors = [], []
    for path in paths:
        try:
            sources.append(Source.read(path))
        except ExchangeError as error:
            errors.append(str(error))
    if errors:
        raise ExchangeError("\n".join(errors))
    return sources


def _named(name: str) -> Format:
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    raise ExchangeError(f"--format {name}: not known; {known()}")


def known() -> str:
    """The formats, for a message."""
    return "what can be read: " + "; ".join(f"{entry.name} ({entry.what})" for entry in FORMATS)


def _guessed(sources: Sequence[Source]) -> Format:
    formats = []
    for source in sources:
        chosen = next((candidate for candidate in FORMATS if candidate.recognises(source)), None)
        if chosen is None:
            raise ExchangeError(f"{source.path}: its format is not known; {known()}")
        formats.append(chosen)
    for source, source_format in zip(sources, formats, strict=True):
        if source_format is not formats[0]:
            raise ExchangeError(
                f"{source.path}: {source_format.name}, but {sources[0].path} is {formats[0].name}; "
                "import them apart"
            )
    return formats[0]
