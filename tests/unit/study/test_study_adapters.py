# SPDX-License-Identifier: Apache-2.0
"""Finding adapters, their sidecars, and the programs that carry cells out."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput, SetupMissing
from lagometer.installation import supervisor_path, worker_command, worker_path
from lagometer.study import Adapter, discover_adapters
from lagometer.study.adapters import available_cpus, load_adapter, misnamed, probe

REPOSITORY = Path(__file__).resolve().parents[3]
SIDECARS = sorted((REPOSITORY / "adapters").glob("*/adapter.json"))


@pytest.mark.parametrize("path", SIDECARS, ids=lambda path: path.parent.name)
def test_sidecars_that_ship_are_valid(path: Path) -> None:
    adapter = load_adapter(path.parent)
    assert adapter.name == path.parent.name
    for option in adapter.sidecar.options.values():
        assert option.default is None or option.accepts(option.default)


def test_those_that_ship_agree_on_who_understands_whom() -> None:
    sidecars = {path.parent.name: load_adapter(path.parent).sidecar for path in SIDECARS}
    for name, sidecar in sidecars.items():
        for other in sidecar.interoperates_with:
            assert other not in sidecars or name in sidecars[other].interoperates_with


def test_the_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_adapters(tmp_path / "first")
    write_adapters(tmp_path / "second")
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", f"{tmp_path}/first/shm::{tmp_path}/second")
    found = discover_adapters()
    assert found["shm"].directory == tmp_path / "first" / "shm"
    assert found["udp"].directory == tmp_path / "second" / "udp"
    assert list(found) == sorted(found)
    assert found["shm"].built
    assert found["shm"].library.is_absolute()


def test_a_path_that_is_not_there_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="LAGOMETER_ADAPTER_PATH"):
        discover_adapters()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scope": "galaxy"}, "scope"),
        ({"abi_version": 2}, "abi_version"),
        ({"surprise": 1}, "surprise"),
        ({"name": "Not A Name"}, "name"),
    ],
)
def test_a_sidecar_that_is_not_valid_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    write_adapters(tmp_path)
    path = tmp_path / "shm" / "adapter.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadInput, match=rf"adapter\.json: {said}"):
        load_adapter(path.parent)
    path.write_text("{")
    with pytest.raises(BadInput, match=r"adapter\.json"):
        load_adapter(path.parent)
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        load_adapter(path.parent)


def with_change(tmp_path: Path, *keys: str, value: object) -> Path:
    """The folder of an adapter whose sidecar has this value under these keys."""
    write_adapters(tmp_path)
    path = tmp_path / "cyclonedds" / "adapter.json"
    sidecar = json.loads(path.read_text())
    inner = sidecar
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    path.write_text(json.dumps(sidecar))
    return path.parent


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (
            ("abilities", "stamps"),
            {"listener": ["sigled"]},
            "abilities.stamps.listener.0: unknown value 'sigled'",
        ),
        (("abilities", "stamps"), {"listner": []}, "abilities.stamps.listner: unknown value 'listner'"),
        (("abilities", "depth"), "no", "abilities.depth: 'no' is not true or false"),
        (("abilities", "domains"), 1, "abilities.domains: '1' is not true or false"),
        (("limits", "depth_max"), "10", "limits.depth_max: '10' is not a whole number"),
        (("limits", "topic_max"), 10, "limits.topic_max: unknown key 'topic_max'"),
        (("abilities", "dispatch"), ["pol"], "abilities.dispatch.0: unknown value 'pol'"),
        (("options", "loud", "defualt"), True, "options.loud.defualt: unknown key 'defualt'"),
        (("message_queues",), ["*"], "message_queues.0: "),
    ],
)
def test_a_wrong_word_in_a_sidecar_is_named_with_its_file_and_key(
    tmp_path: Path, keys: tuple[str, ...], value: object, said: str
) -> None:
    folder = with_change(tmp_path, *keys, value=value)
    with pytest.raises(BadInput, match=re.escape(f"{folder / 'adapter.json'}: {said}")):
        load_adapter(folder)


@pytest.mark.parametrize(
    ("keys", "value", "near"),
    [
        (("abilities", "stamps"), {"listener": ["sigled"]}, "signalled"),
        (("abilities", "stamps"), {"listner": []}, "listener"),
        (("limits", "topic_max"), 10, "topics_max"),
        (("sharedmemory",), [], "shared_memory"),
        (("options", "loud", "defualt"), True, "default"),
        (("abilities", "depht"), False, "depth"),
    ],
)
def test_the_nearest_word_is_offered(tmp_path: Path, keys: tuple[str, ...], value: object, near: str) -> None:
    with pytest.raises(BadInput, match=f"did you mean '{near}'"):
        load_adapter(with_change(tmp_path, *keys, value=value))


def test_a_transport_in_a_sidecar_is_sent_to_the_code_with_the_known_words(tmp_path: Path) -> None:
    said = "unknown key 'transport'.*known are: process, shared-memory, .*; did you mean 'shared-memory'"
    with pytest.raises(BadInput, match=said):
        load_adapter(with_change(tmp_path, "transport", value={"between_processes": ["shm"]}))


def test_all_that_is_wrong_in_a_sidecar_is_named_at_once(tmp_path: Path) -> None:
    with_change(tmp_path, "abilities", "depth", value="no")
    path = tmp_path / "cyclonedds" / "adapter.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "limits": {"topics_max": "2"}}))
    with pytest.raises(BadInput) as caught:
        load_adapter(path.parent)
    assert [each.where.rpartition(" ")[2] for each in caught.value.problems] == [
        "abilities.depth",
        "limits.topics_max",
    ]


def test_a_library_that_is_missing_says_what_helps_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_adapters(tmp_path)
    folder = tmp_path / "shm"
    library = folder / "liblagometer_shm.so"
    library.rename(folder / "shm.so")
    missing = load_adapter(folder).missing
    assert missing is not None and "make setup" not in missing
    assert str(library) in missing and "shm.so: name it under `library`" in missing
    (folder / "shm.so").unlink()
    missing = load_adapter(folder).missing
    assert missing is not None and "build it there" in missing and "docs/ADAPTERS.md" in missing
    monkeypatch.setattr("lagometer.study.adapters.BUILD", tmp_path.parent)
    (tmp_path.parent / "adapters").unlink(missing_ok=True)
    (tmp_path.parent / "adapters").symlink_to(tmp_path)
    missing = load_adapter(tmp_path.parent / "adapters" / "shm").missing
    assert missing is not None and "make setup" in missing


def answering(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch, program: str = "LAGOMETER_WORKER"
) -> Adapter:
    """An adapter that a shell script in a program's place answers for."""
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\n{script}\n")
    worker.chmod(0o755)
    monkeypatch.setenv(program, str(worker))
    return write_adapters(tmp_path / "adapters")["shm"]


@pytest.mark.parametrize(
    ("script", "version", "error"),
    [
        ("""echo noise; echo '{"version": "1.2"}'""", "1.2", None),
        ("echo no json", None, "its probe failed: exit code 0"),
        ("echo broken >&2; exit 1", None, "its probe failed: broken"),
        (
            """echo '{"error": "SyntaxError (x.py, line 4)"}'; exit 1""",
            None,
            "its probe failed: SyntaxError (x.py, line 4)",
        ),
        ("kill -SEGV $$", None, "its probe died of signal 11"),
    ],
)
def test_a_probe_is_an_answer_whatever_happens(
    script: str, version: str | None, error: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = probe(answering(tmp_path, script, monkeypatch))
    assert (answer.version, answer.error) == (version, error)


@pytest.mark.parametrize(
    ("script", "other"),
    [
        ("""read order; echo '{"name": "in_c", "ok": true}'""", "in_c"),
        ("""read order; echo '{"name": "shm", "ok": true}'""", None),
        ("""echo '{"ok": false, "reason": "it is no adapter"}'""", None),
        ("echo no json", None),
        ("kill -SEGV $$", None),
    ],
)
def test_a_library_that_has_another_name_than_its_sidecar_is_told_with_both(
    script: str, other: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = answering(tmp_path, script, monkeypatch, "LAGOMETER_CONFORMANCE")
    assert misnamed(adapter) == (
        f"its code (liblagometer_shm.so) says that its name is '{other}', and its adapter.json says 'shm': "
        "write one name in both, and build it again"
        if other is not None
        else None
    )


def test_without_the_program_nobody_asks_for_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGOMETER_CONFORMANCE", str(tmp_path / "absent"))
    assert misnamed(write_adapters(tmp_path)["shm"]) is None
    assert misnamed(load_adapter(in_python(tmp_path))) is None


def test_programs_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.touch(mode=0o755)
    monkeypatch.setenv("LAGOMETER_WORKER", str(program))
    assert worker_path() == program
    monkeypatch.setenv("LAGOMETER_SUPERVISOR", str(tmp_path / "absent"))
    with pytest.raises(SetupMissing, match="LAGOMETER_SUPERVISOR"):
        supervisor_path()


def test_there_is_a_cpu() -> None:
    assert available_cpus()


def in_python(tmp_path: Path, **change: object) -> Path:
    """The folder of an adapter for the worker in Python."""
    write_adapters(tmp_path)
    folder = tmp_path / "udp"
    package = {"module": "no_such_client.part", "distribution": "no-such-client"}
    python = {"worker": "python", "library": "udp.py", "python_package": package, **change}
    (folder / "udp.py").write_text("")
    path = folder / "adapter.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **python}))
    return folder


def test_an_adapter_in_python_without_its_package_says_what_to_install(tmp_path: Path) -> None:
    missing = load_adapter(in_python(tmp_path)).missing
    assert missing is not None
    for words in ("package no-such-client is not installed", "make bench ADAPTERS=all", "lagometer[clients]"):
        assert words in missing
    sourced = {"module": "no_such_client", "distribution": "no-such-client", "install": "source its setup.sh"}
    missing = load_adapter(in_python(tmp_path / "sourced", python_package=sourced)).missing
    assert missing is not None and missing.endswith("source its setup.sh")
    there = {"module": "json", "distribution": "json"}
    assert load_adapter(in_python(tmp_path, python_package=there)).missing is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"library": "liblagometer_udp.so"}, "is not for the worker python"),
        ({"worker": "lagometer-worker"}, "is not for the worker lagometer-worker"),
        ({"preload": ["x.so"]}, "for shared libraries"),
        ({"worker": "lagometer-worker", "library": "x.so"}, "python_package goes with the worker python"),
    ],
)
def test_a_library_of_the_other_worker_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    folder = in_python(tmp_path, **change)
    with pytest.raises(BadInput, match=said):
        load_adapter(folder)


def test_each_worker_is_started_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.touch(mode=0o755)
    monkeypatch.setenv("LAGOMETER_WORKER", str(program))
    folder = in_python(tmp_path)
    python = worker_command(load_adapter(folder).sidecar.worker)
    assert python == (sys.executable, "-I", "-m", "lagometer.worker_python")
    assert worker_command(load_adapter(tmp_path / "shm").sidecar.worker) == (str(program),)
