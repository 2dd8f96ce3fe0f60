# SPDX-License-Identifier: Apache-2.0
"""A sourced ROS 2 brings middleware of its own, first on every search path: only its adapter may find it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BROUGHT = ("CycloneDDS", "fastcdr", "fastrtps", "iceoryx_hoofs", "iceoryx_posh", "nlohmann_json")


def sourced(prefix: Path) -> dict[str, str]:
    """The environment of a shell where this prefix is sourced; what is found in it stops CMake."""
    for package in BROUGHT:
        folder = prefix / "lib" / "cmake" / package
        folder.mkdir(parents=True)
        (folder / f"{package}-config.cmake").write_text('message(FATAL_ERROR "of the sourced ROS 2")\n')
    (prefix / "bin").mkdir()
    return {
        **os.environ,
        "AMENT_PREFIX_PATH": str(prefix),
        "CMAKE_PREFIX_PATH": str(prefix),
        "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}",
    }


def test_the_distributions_middleware_is_found_in_its_place(tmp_path: Path) -> None:
    prefix, build = tmp_path / "ros", tmp_path / "build"
    environment = sourced(prefix)
    build.mkdir()
    # As left by a configuration that found it there.
    (build / "CMakeCache.txt").write_text(f"fastcdr_DIR:PATH={prefix}/lib/cmake/fastcdr\n")
    command = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(build), "-DLAGOMETER_TESTS=ON"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert f"were not found in the ROS 2 that was sourced, {prefix}" in result.stdout
    folders = [line for line in (build / "CMakeCache.txt").read_text().splitlines() if "_DIR:" in line]
    assert folders
    assert not [line for line in folders if str(prefix) in line]
