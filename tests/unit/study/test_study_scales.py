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
            r"study.yaml:8: unknown key 'trails' \(did you mean",
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
