# SPDX-License-Identifier: Apache-2.0
"""Reading studies: what is right is read, what is wrong is named with its line and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lagometer.errors import BadInput
from lagometer.study import load_study, study_from_mapping
from lagometer.study.document import Entries, parse_document, tree_of
from lagometer.study.factors import FACTORS
from lagometer.study.schema import TOP_LEVEL_KEYS

# A shared machine may be slow; that is no failure.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
GOOD = "name: x\nmatrix:\n  adapter: shm\n  workload: pipeline-2\n"


def failure(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "study.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput) as caught:
        load_study(path)
    return str(caught.value).replace(str(tmp_path) + "/", "")


def loaded(tmp_path: Path, text: str) -> dict[str, tuple[object, ...]]:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return dict(load_study(path).matrix)


def test_the_smallest_study_has_all_defaults(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD)
    study = load_study(path)
    assert (study.duration_ns, study.warmup_ns, study.drain_ns) == (2 * 10**9, 3 * 10**8, 2 * 10**8)
    assert (study.trials, study.seed, study.priority, study.discovery_timeout_ns) == (1, 1, 20, None)
    assert study.matrix == {"adapter": ("shm",), "workload": ("pipeline-2",)}
    assert (study.path, study.text, study.description, study.exclude) == (path, GOOD, "", ())


def test_a_mapping_is_read_as_a_file_is() -> None:
    study = study_from_mapping(
        {
            "name": "m",
            "trials": 2,
            "matrix": {"adapter": None, "workload": ["pingpong"], "payload": [64, "1KB"]},
        },
        source="command line",
    )
    assert study.matrix == {"adapter": ("null",), "workload": ("pingpong",), "payload": (64, 1024)}
    assert study.trials == 2
    with pytest.raises(BadInput, match=r"command line: matrix\.payload: '3'"):
        study_from_mapping(
            {"name": "m", "matrix": {"adapter": "shm", "workload": "pingpong", "payload": 3}}, "command line"
        )


@pytest.mark.parametrize("written", ["null", '"null"', "~", "Null"])
def test_null_is_an_adapter_quoted_or_not(tmp_path: Path, written: str) -> None:
    text = f"name: x\nmatrix:\n  adapter: [{written}, shm]\n  workload: pingpong\n"
    assert loaded(tmp_path, text)["adapter"] == ("null", "shm")


def test_the_matrix_is_put_in_the_order_of_ids(tmp_path: Path) -> None:
    text = "name: x\nmatrix:\n  rate: 1kHz\n  payload: 64\n  workload: pingpong\n  adapter: shm\n"
    assert list(loaded(tmp_path, text)) == ["adapter", "workload", "payload", "rate"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "  paylod: 64B\n", "study.yaml:5: matrix: unknown factor 'paylod' (did you mean 'payload'?)"),
        (GOOD + "trails: 3\n", "study.yaml:5: unknown key 'trails' (did you mean 'trials'?)"),
        (GOOD + "payload: 64B\n", "'payload' is a factor; write it under `matrix:`"),
        (GOOD + "  trials: 3\n", "'trials' is not a factor; write it at the top level"),
        (GOOD + "  reliability: relaible\n", "unknown value 'relaible'; did you mean 'reliable'?"),
        (GOOD + "  reliability: no\n", "an unquoted no is a boolean to YAML"),
        (GOOD + "  reliability: [reliable, ]\n  history: off\n", "an unquoted off is a boolean"),
        (GOOD + "  payload: 010\n", "study.yaml:5: matrix.payload: '010' has a leading zero (octal"),
        (GOOD + "  rate: 1:30\n", "sexagesimal"),
        (GOOD + "  rate: 1e3\n", "'1e3' has an exponent"),
        (GOOD + "  rate: .nan\n", "not a finite number"),
        (GOOD + "  rate: 0Hz\n", "not between"),
        (GOOD + "  payload: 0\n", "smaller than 4 B"),
        (GOOD + "  payload: -64B\n", "negative"),
        (GOOD + "  payload: []\n", "is an empty list"),
        (GOOD + "  payload: [[64B]]\n", "has a list inside its list"),
        (GOOD + "  payload: {a: 1}\n", "has keys under it"),
        (GOOD + "  payload:\n", "study.yaml:5: matrix.payload: has no value"),
        (GOOD + "  payload: [64B, 64]\n", "'64' is listed twice (as '64B')"),
        (GOOD + "  depth: 0\n", "not between 1 and"),
        (GOOD + "  domain: 233\n", "not between 0 and 232"),
        (GOOD + "  cpus: 0-1\n", "is not 'any', 'spread' or CPU numbers"),
        (GOOD + "  work: busy\n", "write 'none' or a busy time"),
        (GOOD + "duration: 2\n", "study.yaml:5: duration: '2' has no unit"),
        (GOOD + "duration: 0s\n", "not between 1ms and 24h"),
        (GOOD + "trials: no\n", "'no' is not a whole number"),
        (GOOD + "trials: [1, 2]\n", "has a list, where one value is expected"),
        (GOOD + "priority: 100\n", "not between 1 and 99"),
        (GOOD + "name: y\n", "study.yaml:5: the key 'name' is written twice (it is already on line 1"),
        (GOOD + "  adapter: udp\n", "the key 'adapter' is written twice"),
        (GOOD + "options: shm\n", "has no adapters under it"),
        (GOOD + "options: {shm: 1}\n", "has no options under it"),
        (GOOD + "\ttabs: 1\n", "study.yaml:5: a tab, which YAML does not allow here (indent with spaces)"),
        (GOOD + "---\nname: y\n", "a second document"),
        (GOOD + "description: *nowhere\n", "undefined alias"),
        (GOOD + "options: &a {shm: *a}\n", "an alias that contains itself"),
        (GOOD + "description: !python/object x\n", "the tag '!python/object' is not known here"),
        (GOOD + "? [a]\n: b\n", "a key that is not a word"),
        (GOOD + "description: [unclosed\n", "is not YAML"),
        ("matrix: {adapter: shm, workload: pingpong}\n", "the key 'name' is missing"),
        ("name: x\n", "the key 'matrix' is missing"),
        ("name: x\nmatrix:\n", "study.yaml:2: matrix: has no factors"),
        ("name: x\nmatrix: {}\n", "the factor 'adapter' is missing"),
        ("name: a/b\nmatrix: {adapter: shm, workload: pingpong}\n", "'a/b' is not a name for a study"),
        ("- a\n- b\n", "study.yaml:1: a list at top level"),
        ("just text\n", "a single value at top level"),
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("[" * 500, "nested too deeply"),
        (b"name: \xff\n", "study.yaml:1: byte 0xff is not UTF-8"),
        (b"name: x\x00\n", "is not YAML"),
        (b"#" * (1 << 21), "larger than"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in failure(tmp_path, text)


def test_workloads_are_checked(tmp_path: Path) -> None:
    wrong = GOOD.replace("pipeline-2", "{}")
    assert "did you mean 'pipeline-3'?" in failure(tmp_path, wrong.format("pipline-3"))
    assert "did you mean 'pingpong'?" in failure(tmp_path, wrong.format("pingpnog"))
    assert "did you mean 'diamond'?" in failure(tmp_path, wrong.format("dimond"))
    assert "not between 2 and 1000" in failure(tmp_path, wrong.format("pipeline-1"))
    assert "neither in" in failure(tmp_path, wrong.format("nowhere/graph.yaml"))


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    message = failure(tmp_path, GOOD + "  paylod: 64B\n  rate: fast\ntrails: 3\n")
    assert len(message.splitlines()) == 3


def test_a_huge_matrix_is_refused_with_its_size(tmp_path: Path) -> None:
    payloads = ", ".join(str(size) for size in range(16, 1016))
    rates = ", ".join(str(rate) for rate in range(1, 102))
    message = failure(tmp_path, GOOD + f"  payload: [{payloads}]\n  rate: [{rates}]\n")
    assert "1000 payload × 101 rate = 101000 cells, more than 100000" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(BadInput):
            load_study(path)


TOO_LONG = "0" * 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("pipeline-2", TOO_LONG), "study.yaml:4: matrix.workload: unknown workload '000"),
        (GOOD.replace("pipeline-2", f"{TOO_LONG}.yaml"), "study.yaml:4: matrix.workload: the workload file"),
        (GOOD + f"  schedule: recorded-{TOO_LONG}\n", "study.yaml:5: matrix.schedule: the file '000"),
        (GOOD + f"  content: recorded-{TOO_LONG}\n", "study.yaml:5: matrix.content: the file '000"),
        (GOOD + f"hosts: {TOO_LONG}\n", "study.yaml:5: hosts: the file '000"),
        (GOOD + f"links: {{a: {{capacity: {TOO_LONG}}}}}\n", "study.yaml:5: links.a.capacity: the file '000"),
    ],
)
def test_a_name_too_long_for_a_file_is_no_files(tmp_path: Path, text: str, said: str) -> None:
    assert said in failure(tmp_path, text)


@pytest.mark.parametrize("key", ["work", "payload"])
def test_a_name_too_long_for_a_file_of_a_workload_is_no_files(tmp_path: Path, key: str) -> None:
    recorded = f"{{recorded: {TOO_LONG}}}"
    work, payload = (f", work: {recorded}", "1KB") if key == "work" else ("", recorded)
    (tmp_path / "w.yaml").write_text(
        f"topics: {{x: {{payload: {payload}}}}}\n"
        f"nodes: {{a: {{trigger: timer, publishes: x{work}}}, b: {{trigger: any, subscribes: x}}}}\n"
    )
    assert f".{key}.recorded: the file '000" in failure(tmp_path, GOOD.replace("pipeline-2", "w.yaml"))


def test_an_alias_is_read_where_it_stands(tmp_path: Path) -> None:
    text = "name: x\nmatrix:\n  adapter: &all [shm, udp]\n  workload: pingpong\nexclude: *all\n"
    assert loaded(tmp_path, text)["adapter"] == ("shm", "udp")


def test_defaults_are_written_as_they_are_read() -> None:
    for factor in FACTORS:
        if factor.default is not None:
            assert factor.parse(factor.write(factor.default)) == factor.default
    for key in TOP_LEVEL_KEYS:
        if key.default:
            key.parse(key.default)


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
TREES = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@PATIENT
@given(
    st.dictionaries(
        st.sampled_from([key.name for key in TOP_LEVEL_KEYS] + ["options", "exclude", "other"]),
        TREES,
        max_size=4,
    ),
    st.dictionaries(st.sampled_from([factor.name for factor in FACTORS] + ["other"]), TREES, max_size=5),
)
def test_any_mapping_is_a_study_or_bad_input(top: dict[str, object], matrix: dict[str, object]) -> None:
    try:
        study_from_mapping({**top, "matrix": matrix}, source="generated")
    except BadInput as error:
        assert str(error).startswith("generated")


@PATIENT
@given(st.text(max_size=200))
def test_any_text_is_a_document_or_bad_input(text: str) -> None:
    try:
        assert isinstance(parse_document(text, "generated"), Entries)
    except BadInput as error:
        assert str(error).startswith("generated")


def test_python_values_become_the_tree_of_the_file() -> None:
    tree = tree_of({"a": [1, "x", True, None]})
    assert isinstance(tree, Entries)
    assert [item.text for item in tree.entries[0][1].items] == ["1", "x", "true", "null"]  # type: ignore[union-attr]
