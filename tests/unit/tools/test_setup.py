# SPDX-License-Identifier: Apache-2.0
"""The set-up of packages: names per distribution, the wait for other package managers, no rights."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import need

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "tools" / "packages"


def os_release(identity: str, version: str = "", codename: str = "", like: str = "", base: str = "") -> str:
    """The text of an os-release file. base: UBUNTU_CODENAME."""
    return (
        f'PRETTY_NAME="{identity.capitalize()} Linux {version}"\nID={identity}\nID_LIKE="{like}"\n'
        f'VERSION_ID="{version}"\nVERSION_CODENAME={codename}\nUBUNTU_CODENAME={base}\n'
    )


OS_RELEASE = {
    "debian 12": os_release("debian", "12", "bookworm"),
    "debian 13": os_release("debian", "13", "trixie"),
    "ubuntu 22.04": os_release("ubuntu", "22.04", "jammy", "debian", "jammy"),
    "ubuntu 24.04": os_release("ubuntu", "24.04", "noble", "debian", "noble"),
    "mint 21": os_release("linuxmint", "21.3", "virginia", "ubuntu debian", "jammy"),
    "raspbian 12": os_release("raspbian", "12", "bookworm", "debian"),
    "debian testing": os_release("debian", "", "forky"),
    "ubuntu 30.04": os_release("ubuntu", "30.04", "zz", "debian", "zz"),
    "fedora 41": os_release("fedora", "41"),
}
COLUMNS = {
    "debian 12": "debian-12",
    "debian 13": "debian-13",
    "ubuntu 22.04": "ubuntu-22.04",
    "ubuntu 24.04": "ubuntu-24.04",
    "mint 21": "ubuntu-22.04",
    "raspbian 12": "debian-12",
    "debian testing": "debian-13",
    "ubuntu 30.04": "ubuntu-24.04",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that comes first on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def write_program(folder: Path, name: str, text: str) -> None:
    """An executable script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def environment(tmp_path: Path, system: str, programs: Path | None = None, **more: str) -> dict[str, str]:
    """The environment in which tools/packages believes to be on `system`."""
    os_release = tmp_path / "os-release"
    os_release.write_text(OS_RELEASE[system])
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    return os.environ | {"LAGOMETER_OS_RELEASE": str(os_release), "PATH": path} | more


def packages(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs tools/packages to its end."""
    return subprocess.run(
        [str(PACKAGES), *arguments], env=env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(("system", "column"), COLUMNS.items())
def test_each_system_has_its_column(tmp_path: Path, system: str, column: str) -> None:
    result = packages("distribution", env=environment(tmp_path, system))
    assert (result.returncode, result.stdout.strip()) == (0, column)


@pytest.mark.parametrize("system", ["debian testing", "ubuntu 30.04"])
def test_a_release_that_is_not_listed_is_named(tmp_path: Path, system: str) -> None:
    result = packages("distribution", env=environment(tmp_path, system))
    assert "is not in tools/packages.table; taking the names of" in result.stderr


def test_an_unknown_distribution_is_told_what_is_needed(tmp_path: Path) -> None:
    result = packages("list", "build", env=environment(tmp_path, "fedora 41"))
    assert result.returncode == 3
    assert "Fedora Linux 41" in result.stderr
    for needed in ("C++20 compiler", "CMake", "Ninja", "nlohmann-json", "zlib", "Python >= 3.10"):
        assert needed in result.stderr


def test_an_absent_os_release_is_an_unknown_distribution(tmp_path: Path) -> None:
    env = environment(tmp_path, "debian 12") | {"LAGOMETER_OS_RELEASE": str(tmp_path / "absent")}
    result = packages("list", "build", env=env)
    assert result.returncode == 3
    assert str(tmp_path / "absent") in result.stderr


@pytest.mark.parametrize("system", COLUMNS)
def test_what_building_needs_is_listed_everywhere(tmp_path: Path, system: str) -> None:
    names = packages("list", "build", env=environment(tmp_path, system)).stdout.split()
    required = {"g++", "cmake", "ninja-build", "nlohmann-json3-dev", "zlib1g-dev", "python3", "python3-venv"}
    assert required <= set(names)
    assert "-" not in names
    assert len(names) == len(set(names))
    assert not [name for name in names if "java" in name or "jre" in name or "jdk" in name]


@pytest.mark.parametrize(
    ("system", "adapters", "browser"),
    [
        ("debian 12", {"cyclonedds-dev", "libfastrtps-dev"}, {"chromium"}),
        ("debian 13", {"cyclonedds-dev"}, {"chromium"}),
        ("ubuntu 22.04", {"libfastrtps-dev"}, set()),
        ("ubuntu 24.04", {"cyclonedds-dev", "libfastrtps-dev"}, set()),
    ],
)
def test_names_differ_by_distribution(
    tmp_path: Path, system: str, adapters: set[str], browser: set[str]
) -> None:
    names = set(packages("list", "build,test", env=environment(tmp_path, system)).stdout.split())
    assert names & {"cyclonedds-dev", "libfastrtps-dev", "libfastdds-dev"} == adapters
    assert names & {"chromium", "chromium-browser"} == browser


def test_sets_are_kept_apart(tmp_path: Path) -> None:
    env = environment(tmp_path, "debian 12")
    build = packages("list", "build", env=env).stdout.split()
    both = packages("list", "build,test", env=env).stdout.split()
    assert "libgtest-dev" not in build
    assert both == [*build, *packages("list", "test", env=env).stdout.split()]


@pytest.mark.parametrize("system", COLUMNS)
def test_more_middleware_is_a_set_of_its_own(tmp_path: Path, system: str) -> None:
    """What only few want is not in the way of everybody's first set-up, and none of it is required."""
    env = environment(tmp_path, system)
    rack = set(packages("list", "rack", env=env).stdout.split())
    assert {"libmosquitto-dev", "mosquitto"} <= rack
    assert not rack & set(packages("list", "build,test", env=env).stdout.split())
    table = (ROOT / "tools" / "packages.table").read_text().splitlines()
    needs = {line.split()[2] for line in table if line.startswith(("package rack ", "package rust"))}
    assert needs == {"optional"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "adapters").glob("*/adapter.json")), ids=lambda path: path.parent.name
)
def test_what_an_adapter_names_is_in_the_table(path: Path) -> None:
    """A package of its sidecar at least (which may bring the others), and those of its daemons."""
    sidecar = json.loads(path.read_text())
    table = (ROOT / "tools" / "packages.table").read_text()
    for names in sidecar.get("packages", {}).values():
        assert [name for name in names if f" {name} " in table], names
    for daemon in sidecar.get("daemons", []):
        # ROS 2's own packages come from elsewhere, with the installation that is sourced.
        assert daemon["package"].startswith("ros-") or f" {daemon['package']} " in table


def make_dry(*words: str) -> list[str]:
    """The calls of tools/setup that make would carry out."""
    command = ["make", "--dry-run", "--no-print-directory", "-C", str(ROOT), *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [line.strip() for line in said.splitlines() if "tools/setup" in line]


def test_all_adapters_are_asked_for_by_a_word() -> None:
    assert make_dry("bench", "ADAPTERS=all") == ["tools/setup --rack --rust"]
    assert make_dry("bench") == ["tools/setup"]
    assert make_dry("bench", "ADAPTERS=shm") == ["tools/setup"]


def test_nothing_is_run_when_all_is_there(tmp_path: Path, programs: Path) -> None:
    write_program(programs, "dpkg-query", "printf installed")
    write_program(programs, "apt-get", f"touch '{tmp_path}/called'")
    result = packages("install", "build,test", env=environment(tmp_path, "debian 12", programs))
    assert (result.returncode, result.stderr) == (0, "")
    assert not (tmp_path / "called").exists()


def test_without_rights_it_says_what_is_missing_and_goes_on(tmp_path: Path, programs: Path) -> None:
    write_program(programs, "dpkg-query", '[ "$4" = cyclonedds-dev ] && exit 1; printf installed')
    write_program(programs, "id", "echo 1000")
    write_program(programs, "sudo", "exit 1")
    write_program(programs, "apt-get", f"touch '{tmp_path}/called'")
    result = subprocess.run(
        [str(PACKAGES), "install", "build"],
        env=environment(tmp_path, "debian 12", programs),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 4, "only an optional package is missing"
    assert "no right to install packages" in result.stderr
    assert "cyclonedds-dev, so left out: the adapter for Cyclone DDS" in result.stderr
    assert "sudo apt-get install --no-install-recommends cyclonedds-dev" in result.stderr
    assert not (tmp_path / "called").exists()


def test_a_missing_required_package_is_another_exit_code(tmp_path: Path, programs: Path) -> None:
    write_program(programs, "dpkg-query", '[ "$4" = cmake ] && exit 1; printf installed')
    write_program(programs, "id", "echo 0")
    write_program(programs, "apt-get", 'echo "E: Unable to locate package cmake"; exit 100')
    result = packages("install", "build", env=environment(tmp_path, "debian 12", programs))
    assert result.returncode == 1
    assert "missing: cmake (required)" in result.stderr
    assert "E: Unable to locate package cmake" in result.stderr


def test_one_package_that_cannot_be_had_does_not_keep_the_rest_away(tmp_path: Path, programs: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    write_program(programs, "dpkg-query", f"[ -e '{installed}'/\"$4\" ] && printf installed")
    write_program(programs, "id", "echo 0")
    write_program(
        programs,
        "apt-get",
        f"""for word; do case $word in libfastrtps-dev) exit 100 ;; esac; done
        for word; do touch "{installed}/$word" 2>/dev/null; done; exit 0""",
    )
    result = packages("install", "build", env=environment(tmp_path, "debian 12", programs))
    assert result.returncode == 4
    assert (installed / "cyclonedds-dev").exists()
    assert "libfastrtps-dev could not be installed" in result.stderr


def apt_configuration(folder: Path) -> Path:
    """Settings that keep the real apt-get within `folder`, with no source to fetch from."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc/parts"):
        (folder / name).mkdir(parents=True)
    (folder / "state" / "status").touch()
    settings = folder / "apt.conf"
    settings.write_text(
        f'Dir::State "{folder}/state";\nDir::State::status "{folder}/state/status";\n'
        f'Dir::Cache "{folder}/cache";\nDir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{folder}/etc/parts";\nDebug::NoLocking "false";\n'
    )
    return settings


HOLD_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_it_waits_for_a_package_lock_and_says_so(tmp_path: Path, programs: Path) -> None:
    """The real apt-get, in a folder of its own, while another process holds the lock of the lists."""
    need("apt-get")
    settings = apt_configuration(tmp_path / "apt")
    write_program(programs, "dpkg-query", '[ "$4" = cyclonedds-dev ] && exit 1; printf installed')
    write_program(programs, "id", "echo 0")
    lock = tmp_path / "apt" / "state" / "lists" / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    env = environment(tmp_path, "debian 12", programs, APT_CONFIG=str(settings))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        command = [str(PACKAGES), "install", "build"]
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as waiting:
            assert waiting.stderr is not None
            for line in waiting.stderr:
                if "waiting for the package lock" in line:
                    break
            else:
                pytest.fail("it did not say that it waits")
            assert f"process {holder.pid}" in line
            holder.communicate()
            rest = waiting.stderr.read()
        # The lock is free, so it went on; without any source the package itself can't be had.
        assert "cyclonedds-dev could not be installed" in rest
        assert waiting.returncode == 4
    finally:
        holder.kill()
        holder.communicate()


def test_the_wait_for_a_lock_ends(tmp_path: Path, programs: Path) -> None:
    write_program(programs, "dpkg-query", '[ "$4" = cyclonedds-dev ] && exit 1; printf installed')
    write_program(programs, "id", "echo 0")
    message = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (other-apt)"
    write_program(programs, "apt-get", f'echo "{message}"; exit 100')
    env = environment(tmp_path, "debian 12", programs, LAGOMETER_LOCK_TIMEOUT="0")
    result = packages("install", "build", env=env)
    assert result.returncode == 4
    assert "still held by process 42 (other-apt)" in result.stderr


def test_the_set_up_refuses_an_unknown_option() -> None:
    result = subprocess.run(
        [str(ROOT / "tools" / "setup"), "--tets"], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 1
    assert "unknown option --tets" in result.stderr


@pytest.mark.parametrize("name", ["run.txt", "develop.txt", "clients.txt"])
def test_lock_files_pin_and_hash_everything_and_name_no_host(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    assert "://" not in text
    assert "--find-links" not in text
    entries = [entry for entry in text.replace("\\\n", " ").splitlines() if entry and entry[0] != "#"]
    assert entries
    for entry in entries:
        assert "==" in entry.split()[0], entry
        assert "--hash=sha256:" in entry, entry


def test_a_held_lock_is_one_that_apt_sees(tmp_path: Path) -> None:
    """The locks that apt takes are fcntl's, as the test above holds one: not flock's."""
    path = tmp_path / "lock"
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        probe = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        child = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in child.stderr
