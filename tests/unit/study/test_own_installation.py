# SPDX-License-Identifier: Apache-2.0
"""Middleware of the user's own installation: found or not in fake homes, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from study_adapters import write_adapters

from lagometer.cli.doctor import render_installations
from lagometer.errors import BadInput
from lagometer.study import expand, study_from_mapping
from lagometer.study.own_installation import PRODUCTS, Product, look_for, without_adapter

REPOSITORY = Path(__file__).resolve().parents[3]
CONTENTS = {
    "connext": ("include/ndds/ndds_c.h", "lib/x64Linux4gcc8.5.0/libnddscore.so"),
    "opensplice": ("include/dcps/C/SAC/dds_dcps.h", "lib/libddskernel.so"),
}
EACH = pytest.mark.parametrize("product", PRODUCTS.values(), ids=lambda product: product.name)


def home_of(product: Product, folder: Path, *, without: str = "") -> dict[str, str]:
    """A fake home, and the environment that names it."""
    for name in CONTENTS[product.name]:
        if not (without and name.startswith(without)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
    return {product.variable: str(folder)}


@EACH
@pytest.mark.parametrize("given", [None, ""])
def test_without_a_home_it_says_what_is_needed(product: Product, given: str | None) -> None:
    found = look_for(product, {} if given is None else {product.variable: given})
    assert found.home is None
    assert found.lacking == f"{product.variable} is not set"
    for word in (product.title, product.variable, *product.holds, product.licence_variables[0]):
        assert word in found.says
    assert "your own installation and licence" in found.says


@EACH
def test_a_home_that_is_not_there_is_named(product: Product, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for home in (tmp_path / "absent", file, "/" + "x" * 300):  # the last: a name that no system takes
        found = look_for(product, {product.variable: str(home)})
        assert found.home is None
        assert found.lacking == f"{product.variable} is '{home}', which is not a folder"
        assert found.lacking in found.says


@EACH
def test_a_home_that_is_not_whole_says_what_it_lacks(product: Product, tmp_path: Path) -> None:
    headers, libraries = product.holds
    for without, lacks in (("include", headers), ("lib", libraries)):
        found = look_for(product, home_of(product, tmp_path / without, without=without))
        assert found.home is None
        assert found.lacking.endswith(f", which has no {lacks}")
    (tmp_path / "empty").mkdir()
    found = look_for(product, {product.variable: str(tmp_path / "empty")})
    assert found.lacking.endswith(f", which has no {headers} and no {libraries}")


@EACH
def test_a_whole_home_is_found_and_still_never_run(product: Product, tmp_path: Path) -> None:
    found = look_for(product, home_of(product, tmp_path))
    assert (found.home, found.lacking) == (tmp_path, "")
    assert found.says.startswith(f"never run: {product.title} is found at {tmp_path} (no licence: looked at ")
    assert "no adapter for it that has ever been compiled" in found.says
    assert "docs/ADAPTERS.md" in found.says


@EACH
def test_a_licence_is_where_a_variable_says_or_in_the_home(product: Product, tmp_path: Path) -> None:
    home = home_of(product, tmp_path)
    assert product.licence_note in look_for(product, home).licence
    own = tmp_path / product.licence_file
    own.parent.mkdir(exist_ok=True)
    own.touch()
    assert look_for(product, home).licence == f"licence: {own}"
    for variable in product.licence_variables:
        other = tmp_path / "other.lic"
        other.touch()
        assert look_for(product, {**home, variable: str(other)}).licence == f"licence: {variable}={other}"
        wrong = look_for(product, {**home, variable: "/nowhere/x.lic"}).licence
        assert wrong == f"no licence: {variable} is '/nowhere/x.lic', which does not exist"
        server = look_for(product, {**home, variable: "7201@licences"}).licence
        assert server.startswith("licence: " if product.licence_server else "no licence: ")


def test_the_environment_of_the_process_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NDDSHOME", home_of(PRODUCTS["connext"], tmp_path)["NDDSHOME"])
    monkeypatch.delenv("OSPL_HOME", raising=False)
    connext, opensplice = without_adapter(())
    assert (connext.home, opensplice.home) == (tmp_path, None)


def excluded(
    adapters: list[str], options: Mapping[str, object], folder: Path, own: bool = False
) -> dict[str, str]:
    """Why each adapter's cell is excluded; own: with an adapter named connext that somebody wrote."""
    there = write_adapters(folder)
    if own:
        sidecar = there["shm"].sidecar.model_copy(update={"name": "connext"})
        there["connext"] = replace(there["shm"], sidecar=sidecar)
    matrix = {"adapter": adapters, "workload": "pipeline-2"}
    study = study_from_mapping({"name": "test", "matrix": matrix, "options": options}, source="test")
    found = expand(study, there, (0, 1)).excluded
    return {each.cell.partition("/")[0]: each.reason for each in found}


def test_its_cells_are_excluded_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NDDSHOME", raising=False)
    monkeypatch.setenv("OSPL_HOME", home_of(PRODUCTS["opensplice"], tmp_path / "ospl")["OSPL_HOME"])
    reasons = excluded(["shm", "connext", "opensplice", "cyclonedds+connext"], {}, tmp_path)
    assert list(reasons) == ["connext", "opensplice", "cyclonedds+connext"]
    assert reasons["connext"].startswith("not found: NDDSHOME is not set; ")
    assert reasons["opensplice"].startswith(f"never run: Vortex OpenSplice is found at {tmp_path / 'ospl'} ")
    assert reasons["cyclonedds+connext"] == f"connext: {reasons['connext']}"


def test_an_adapter_of_its_name_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NDDSHOME", raising=False)
    assert excluded(["shm", "connext"], {}, tmp_path, own=True) == {}


def test_options_for_it_are_refused_and_its_name_is_hinted_at(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'connext' has no adapter here, and so no options .not found: "):
        excluded(["shm"], {"connext": {"depth": 1}}, tmp_path)
    with pytest.raises(BadInput, match=r"unknown adapter 'conext' .did you mean 'connext'"):
        excluded(["conext"], {}, tmp_path)


def lagometer(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    write_adapters(folder)
    worker = folder / "worker"
    worker.write_text("""#!/bin/sh\necho '{"version": "1"}'\n""")
    worker.chmod(0o755)
    set_apart = {
        variable
        for product in PRODUCTS.values()
        for variable in (product.variable, *product.licence_variables)
    }
    inherited = {name: value for name, value in os.environ.items() if name not in set_apart}
    ours = {"LAGOMETER_ADAPTER_PATH": str(folder), "LAGOMETER_WORKER": str(worker), "COLUMNS": "300"}
    return subprocess.run(
        [sys.executable, "-m", "lagometer.cli.main", *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**inherited, **ours, **environment},
    )


def test_commands_say_it(tmp_path: Path) -> None:
    home = home_of(PRODUCTS["connext"], tmp_path / "home")
    adapters = tmp_path / "adapters"
    rows = json.loads(lagometer(adapters, "adapters", "--json", **home).stdout)["adapters"]
    by_name = {row["name"]: row for row in rows}
    assert [by_name[name]["built"] for name in PRODUCTS] == [False, False]
    assert by_name["connext"]["reason"].startswith("never run: ")
    assert by_name["opensplice"]["reason"].startswith("not found: OSPL_HOME is not set")
    measured = lagometer(adapters, "measure", "connext", **home)
    assert measured.returncode == 4
    assert f"never run: RTI Connext DDS is found at {home['NDDSHOME']} " in measured.stderr
    examined = lagometer(adapters, "conformance", "opensplice")
    assert examined.returncode == 4
    assert "not found: OSPL_HOME is not set" in examined.stderr


def test_the_doctor_shows_what_it_found(tmp_path: Path) -> None:
    home = home_of(PRODUCTS["opensplice"], tmp_path / "home")
    said = json.loads(lagometer(tmp_path / "adapters", "doctor", "--json", **home).stdout)["installations"]
    assert [(each["name"], each["home"], each["lacking"]) for each in said] == [
        ("connext", None, "NDDSHOME is not set"),
        ("opensplice", home["OSPL_HOME"], None),
    ]
    console = Console(record=True, width=60)
    render_installations([look_for(product, home) for product in PRODUCTS.values()], console)
    shown = console.export_text()
    assert "connext  RTI Connext DDS: NDDSHOME is not set; no licence: looked at RTI_LICENSE_FILE" in shown
    assert f"opensplice  Vortex OpenSplice: found at {home['OSPL_HOME']}; no licence: looked at " in shown


def test_the_rack_study_names_them_and_the_page_says_never_run() -> None:
    page = (REPOSITORY / "docs" / "ADAPTERS.md").read_text(encoding="utf-8")
    matrix = (REPOSITORY / "docs" / "adapters" / "matrix.md").read_text(encoding="utf-8")
    rack = (REPOSITORY / "studies" / "rack.yaml").read_text(encoding="utf-8")
    for product in PRODUCTS.values():
        assert f"| `{product.name}` | never run |" in matrix
        assert product.variable in page
        assert product.name in rack
