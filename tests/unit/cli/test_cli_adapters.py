# SPDX-License-Identifier: Apache-2.0
"""`lagometer adapters` in a terminal of 80 columns: a line for each adapter, each reason once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_adapters import SPECIAL, write_adapters

from lagometer.cli import adapters
from lagometer.study.adapters import NOT_FOR_MEASURING
from lagometer.study.own_installation import PRODUCTS

IN_RUST = (
    "adapters in Rust are built on request alone: make bench ADAPTERS=all, or CMake; needs cargo >= 1.89"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    worker = tmp_path / "worker"
    worker.write_text("""#!/bin/sh\necho '{"version": "libmiddleware of the vendor 2.0.11"}'\n""")
    worker.chmod(0o755)
    path = tmp_path / "adapters"
    no_package = "libdds-dev is not installed " + "and more of it " * 10
    missing = {"fastdds": no_package, "cyclonedds": no_package, "ros2": IN_RUST, "udp": IN_RUST}
    write_adapters(path, missing)
    # These alone: those of a build that is there would come along.
    monkeypatch.setattr(
        "lagometer.study.adapters._adapter_directories", lambda: sorted(p for p in path.iterdir())
    )
    monkeypatch.setenv("LAGOMETER_WORKER", str(worker))
    monkeypatch.setenv("COLUMNS", "80")
    for product in PRODUCTS.values():
        monkeypatch.delenv(product.variable, raising=False)
    return path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_each_adapter_has_one_line_of_80_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapters.command()
    printed = lines(capsys)
    assert max(len(line) for line in printed) <= 80
    for name in (*SPECIAL, *PRODUCTS):
        assert sum(line.split(" ")[0] == name for line in printed) == 1, name
    by_name = {line.split(" ")[0]: line.split() for line in printed}
    assert by_name["shm"][1:] == ["ready", "2.0.11", "host", "lwp", "yes", "yes", "bytes"]
    assert by_name["null"][3:5] == ["process", "-wp"]
    assert by_name["udp"][1:] == ["not", "built", "–", "host", "lwp", "no", "yes", "bytes"]
    assert by_name["ros2"][-1] == "2" and by_name["connext"][1:3] == ["not", "found"]


def test_a_reason_is_said_once_for_all_that_it_keeps_away(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapters.command()
    whole = "\n".join(lines(capsys))
    text = " ".join(whole.split())
    assert "2 adapters come with `make bench ADAPTERS=all` (what that needs: --wide): ros2, udp" in text
    assert text.count("libdds-dev is not installed") == 1
    assert "cyclonedds, fastdds: libdds-dev" in text


def test_one_that_is_built_for_tests_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = folder.parent / "worker"
    version = f"1.10.2 (opt-level 1{NOT_FOR_MEASURING}"
    worker.write_text(f"""#!/bin/sh\necho '{{"version": "{version}"}}'\n""")
    adapters.command()
    printed = lines(capsys)
    by_name = {line.split(" ")[0]: line.split() for line in printed}
    assert by_name["shm"][1:4] == ["for", "tests", "1.10.2"]
    said = " ".join("\n".join(printed).split())
    assert (
        "null, shm, zeromq: built for tests, not for measuring; tools/setup --rust builds what measures"
        in said
    )
    adapters.command(json=True)
    (row,) = [row for row in json.loads(capsys.readouterr().out)["adapters"] if row["name"] == "shm"]
    assert (row["state"], row["version"]) == ("for tests", version)


def test_one_whose_library_has_another_name_is_not_ready(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    conformance = folder.parent / "conformance"
    conformance.write_text("""#!/bin/sh\necho '{"name": "shm", "ok": true}'\n""")
    conformance.chmod(0o755)
    monkeypatch.setenv("LAGOMETER_CONFORMANCE", str(conformance))
    adapters.command(json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["adapters"]}
    assert (rows["shm"]["state"], rows["null"]["state"]) == ("ready", "fails")
    assert rows["shm"]["reason"] is None
    assert rows["null"]["reason"].startswith(
        "its code (liblagometer_null.so) says that its name is 'shm', and its adapter.json says 'null': "
    )
    adapters.command()
    said = " ".join(capsys.readouterr().out.split())
    assert "null: its code (liblagometer_null.so) says that its name is 'shm'" in said


def test_wide_has_everything_and_json_says_state_and_abilities(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapters.command(wide=True)
    printed = lines(capsys)
    assert len(printed) == 1 + len(SPECIAL) + len(PRODUCTS)
    of_ros2 = next(line for line in printed if line.startswith("ros2 "))
    assert of_ros2.endswith(f"not built: {IN_RUST}") and "bytes,fixed,string,Image" in of_ros2
    adapters.command(json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["adapters"]}
    assert [rows[name]["state"] for name in ("shm", "udp", "connext")] == ["ready", "not built", "not found"]
    assert rows["shm"]["abilities"]["durability"] == ["volatile", "transient_local"]
    assert rows["connext"]["abilities"] is None


def test_without_an_adapter_it_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lagometer.study.adapters._adapter_directories", list)
    adapters.command()
    assert "run `make setup`" in capsys.readouterr().out
