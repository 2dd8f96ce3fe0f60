# SPDX-License-Identifier: Apache-2.0
"""The same study in several sizes: what a scale replaces, what it leaves, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lagometer.errors import BadInput
from lagometer.study import load_study

STUDY = """
name: sized
duration: 60s
trials: 20
matrix: {adapter: shm, workload: pipeline-3, payload: [64B, 1KB]}
scales:
  quick: {duration: 1s, trials: 1, matrix: {payload: 64B, rate: 10Hz}}
  full: {trials: 100, seed: 7}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_a_scale_replaces_keys_and_single_factors(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY)
    plain, quick, full = (load_study(path, scale) for scale in (None, "quick", "full"))
    assert (plain.duration_ns, plain.trials, plain.matrix["payload"]) == (60 * 10**9, 20, (64, 1024))
    assert (quick.duration_ns, quick.trials) == (10**9, 1)
    assert quick.matrix == {
        "adapter": ("shm",),
        "workload": ("pipeline-3",),
        "payload": (64,),
        "rate": (10.0,),
    }
    assert (full.duration_ns, full.trials, full.seed, full.matrix) == (60 * 10**9, 100, 7, plain.matrix)
    assert [study.as_json()["scale"] for study in (plain, quick, full)] == [None, "quick", "full"]
    assert quick.text == plain.text, "the file is kept whole"


@pytest.mark.parametrize(
    ("text", "scale", "said"),
    [
        (STUDY, "quik", r"study.yaml:7: scales: no scale 'quik' \(did you mean 'quick'"),
        ("name: s\nmatrix: {adapter: shm, workload: pipeline-3}\n", "quick", "the study has no `scales:`"),
        (
            STUDY.replace("trials: 100", "trails: 100"),
            None,
            r"study.yaml:8: unknown key 'trails', at the scale full \(did you mean",
        ),
        (STUDY.replace("64B, rate", "3B, rate"), "full", r"study.yaml:7: matrix.payload: '3B' is smaller"),
        (STUDY.replace("trials: 100", "name: other"), None, "scales.full: a scale can't set 'name'"),
        (STUDY.replace("{trials: 100, seed: 7}", "100"), None, "scales.full: sets nothing"),
    ],
)
def test_what_is_wrong_is_said_whichever_scale_is_asked_for(
    tmp_path: Path, text: str, scale: str | None, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        load_study(written(tmp_path, text), scale)


SETTLING = """
name: settling
duration: 60s
warmup: {min: 1s, max: 5s}
matrix: {adapter: shm, workload: pipeline-2}
"""
SHORT = "'5s' is not between warmup.min and warmup.min + duration (1s and 3s)"


def problems(folder: Path, text: str, scale: str | None = None) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_study(written(folder, text), scale)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize("scale", [None, "quick", "full"])
def test_what_only_a_scale_contradicts_names_it(tmp_path: Path, scale: str | None) -> None:
    """The line is right as it is written: the scale's duration is the cause."""
    text = SETTLING + "scales: {quick: {duration: 2s}, full: {trials: 9}}\n"
    assert problems(tmp_path, text, scale) == [
        f"study.yaml:4: warmup.max: {SHORT}, at the scale quick (something must be left to measure)"
    ]


def test_what_is_wrong_at_every_scale_is_said_once_and_of_none(tmp_path: Path) -> None:
    text = SETTLING.replace("60s", "x") + "scales: {quick: {trials: 2}, full: {trials: y}}\n"
    for scale in (None, "quick"):
        first, second = sorted(problems(tmp_path, text, scale))
        assert first.startswith("study.yaml:3: duration: 'x'") and "scale" not in first
        assert second.startswith("study.yaml:6: trials: 'y'") and ", at the scale full" in second


@pytest.mark.parametrize("scales", ["[quick, evening]", "quick", "", "{}"])
@pytest.mark.parametrize("scale", [None, "quick"])
def test_scales_without_any_are_refused(tmp_path: Path, scales: str, scale: str | None) -> None:
    assert problems(tmp_path, SETTLING + f"scales: {scales}\n", scale) == [
        "study.yaml:6: scales: has no scales under it (write `quick: {trials: 1}` under it)"
    ]


def test_what_only_a_part_contradicts_names_it(tmp_path: Path) -> None:
    parts = "parts: {long: {trials: 2}, short: {duration: 2s}}\n"
    of_part = f"study.yaml:4: warmup.max: {SHORT}, in the part short"
    assert problems(tmp_path, SETTLING + parts) == [f"{of_part} (something must be left to measure)"]
    scales = "scales: {quick: {parts: {short: {duration: 2s}}}}\n"
    text = SETTLING + parts.replace("2s", "20s") + scales
    assert problems(tmp_path, text) == [f"{of_part}, at the scale quick (something must be left to measure)"]
    text = SETTLING.replace("60s", "2s") + parts.replace("duration: 2s", "trials: 3")
    (said,) = problems(tmp_path, text)
    assert said == f"study.yaml:4: warmup.max: {SHORT} (something must be left to measure)", "of all of them"
