# SPDX-License-Identifier: Apache-2.0
"""Which adapters are available: sidecars and libraries, and the programs that run cells.

Searched in this order; the first adapter with a name wins: each entry of LAGOMETER_ADAPTER_PATH (a folder of
adapters, or one adapter's own folder), the installed `<package>/libexec/adapters`, and the development build
`build/release/adapters`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from lagometer.errors import BadInput, SetupMissing
from lagometer.installation import BUILD, PACKAGE, conformance_command, worker_command
from lagometer.study.adapter import Adapter
from lagometer.study.sidecar import Sidecar
from lagometer.study.sidecar_problems import problems_of
from lagometer.study.stacking import Options, stand

if TYPE_CHECKING:
    from lagometer.study.cell import Cell

SIDECAR = "adapter.json"
MISSING = "missing.txt"
PROBE_TIMEOUT_S = 10.0
# The end of the version of an adapter that was built only for tests: adapters/rust/build_script.rs.
NOT_FOR_MEASURING = ": not for measuring)"


@dataclass(frozen=True)
class Probe:
    """What an adapter reported from a child process. error: why it reported nothing, else None."""

    version: str | None
    error: str | None


def discover_adapters(options: Options | None = None) -> dict[str, Adapter]:
    """Returns all adapters by name. `options`: the study's options, which may name the adapter to wrap.

    Raises BadInput for an invalid sidecar, or if a path entry or the adapter to wrap does not exist.
    """
    adapters: dict[str, Adapter] = {}
    for directory in _adapter_directories():
        adapter = load_adapter(directory)
        adapters.setdefault(adapter.name, adapter)
    return dict(sorted(stand(adapters, options or {}).items()))


def load_adapter(directory: Path) -> Adapter:
    """Returns the adapter whose sidecar is in `directory`. Raises BadInput."""
    path = directory / SIDECAR
    try:
        sidecar = Sidecar.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValidationError as error:
        raise BadInput.of(problems_of(error, path)) from error
    return Adapter(sidecar=sidecar, directory=directory.resolve(), missing=_missing(directory, sidecar))


def probe(adapter: Adapter) -> Probe:
    """Asks the library for its version, in a child process so that a crash is just another result."""
    command = [*worker_command(adapter.sidecar.worker), "--probe", str(adapter.library)]
    try:
        result = _carried_out(adapter, command)
    except subprocess.TimeoutExpired:
        return Probe(None, f"its probe did not end within {PROBE_TIMEOUT_S:.0f} s")
    except OSError as error:
        return Probe(None, f"the worker cannot be started: {error.strerror}")
    return _read_probe(result)


def misnamed(adapter: Adapter) -> str | None:
    """Returns what is wrong if the library itself has another name than the sidecar; None if it has the same,
    or can't be asked. A Python module has no name of its own."""
    if adapter.sidecar.worker == "python":
        return None
    try:
        command = conformance_command(adapter.sidecar.worker)
        with tempfile.TemporaryDirectory(prefix="lagometer-") as folder:
            order = {"do": "load", "library": str(adapter.library), "runtime_directory": folder}
            result = _carried_out(adapter, command, json.dumps(order).encode() + b"\n")
    except (subprocess.TimeoutExpired, OSError, SetupMissing):
        return None
    answer = _answer(result)
    name = answer.get("name") if isinstance(answer, Mapping) else None
    if not isinstance(name, str) or name == adapter.name:
        return None
    return (
        f"its code ({adapter.sidecar.library}) says that its name is '{name}', and its {SIDECAR} says "
        f"'{adapter.name}': write one name in both, and build it again"
    )


def refuse_misnamed(cells: Iterable[Cell], adapters: Mapping[str, Adapter]) -> None:
    """Raises BadInput if an adapter of these cells has another name in its library than in its sidecar, and
    than in any other sidecar that describes the same library."""
    for name in dict.fromkeys(name for cell in cells for name in cell.adapters):
        library = adapters[name].library.resolve()
        others = [
            each for each in adapters.values() if each.name != name and each.library.resolve() == library
        ]
        wrong = misnamed(adapters[name])
        if wrong is not None and all(misnamed(other) is not None for other in others):
            raise BadInput(wrong, where=name)


def available_cpus() -> tuple[int, ...]:
    """Returns the CPUs that this process may use, in ascending order."""
    return tuple(sorted(os.sched_getaffinity(0)))


def _adapter_directories() -> Iterator[Path]:
    for entry in os.environ.get("LAGOMETER_ADAPTER_PATH", "").split(os.pathsep):
        if not entry:
            continue
        if not Path(entry).is_dir():
            raise BadInput(
                f"'{entry}' is not a folder", where="LAGOMETER_ADAPTER_PATH", hint="name folders of adapters"
            )
        yield from _with_sidecar(Path(entry))
    for root in _own_roots():
        yield from _with_sidecar(root)


def _with_sidecar(root: Path) -> Iterator[Path]:
    if (root / SIDECAR).is_file():
        yield root
    elif root.is_dir():
        yield from (path for path in sorted(root.iterdir()) if (path / SIDECAR).is_file())


def _missing(directory: Path, sidecar: Sidecar) -> str | None:
    reason = directory / MISSING
    if reason.is_file():
        return f"not built: {reason.read_text(encoding='utf-8', errors='replace').strip()}"
    if not (directory / sidecar.library).is_file():
        return f"not built: {directory / sidecar.library} is not there; {_how_to_build(directory, sidecar)}"
    package = sidecar.python_package
    if package is not None and not _importable(package.module.partition(".")[0]):
        install = package.install or "`make bench ADAPTERS=all` does it, or `pip install lagometer[clients]`"
        return (
            f"the Python package {package.distribution} is not installed for Python "
            f"{platform.python_version()} in {sys.prefix}: {install}"
        )
    return None


def _how_to_build(directory: Path, sidecar: Sidecar) -> str:
    """Returns a hint for a missing library: our setup builds ours, their authors build others."""
    if any(directory.resolve().is_relative_to(root.resolve()) for root in _own_roots()):
        return "run `make setup`"
    suffix = Path(sidecar.library).suffix
    libraries = sorted(path.name for path in directory.glob(f"*{suffix}")) if suffix else []
    if libraries:
        return f"in its folder is {', '.join(libraries)}: name it under `library` in {SIDECAR}, or rename it"
    return f'build it there, beside {SIDECAR} (docs/ADAPTERS.md, "Write one", has the command)'


def _own_roots() -> tuple[Path, ...]:
    """Where lagometer's own adapters are: installed, and built for development."""
    return (PACKAGE / "libexec" / "adapters", BUILD / "adapters")


def _importable(module: str) -> bool:
    """Whether a Python worker can import the module; a worker ignores the user's site directory."""
    specification = importlib.util.find_spec(module)
    if specification is None:
        return False
    return not Path(specification.origin or "").is_relative_to(site.getusersitepackages())


def _carried_out(
    adapter: Adapter, command: Sequence[str], standard_input: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program that loads the library, in its surroundings. Raises OSError, TimeoutExpired."""
    environment = {**os.environ, **adapter.sidecar.environment}
    if adapter.sidecar.preload:
        environment["LD_PRELOAD"] = ":".join(adapter.sidecar.preload)
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        input=standard_input,
        env=environment,
        timeout=PROBE_TIMEOUT_S,
    )


def _answer(result: subprocess.CompletedProcess[bytes]) -> object:
    """The JSON in the last line of the output; None if it is something else."""
    lines = result.stdout.decode("utf-8", errors="replace").strip().splitlines()
    try:
        answer: object = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer


def _read_probe(result: subprocess.CompletedProcess[bytes]) -> Probe:
    if result.returncode < 0:
        return Probe(None, f"its probe died of signal {-result.returncode}")
    answer = _answer(result)
    if result.returncode == 0 and isinstance(answer, Mapping) and isinstance(answer.get("version"), str):
        return Probe(str(answer["version"]), None)
    if isinstance(answer, Mapping) and isinstance(answer.get("error"), str):
        return Probe(None, f"its probe failed: {answer['error']}")
    error_lines = result.stderr.decode("utf-8", errors="replace").strip().splitlines()
    return Probe(
        None, f"its probe failed: {error_lines[-1] if error_lines else f'exit code {result.returncode}'}"
    )
