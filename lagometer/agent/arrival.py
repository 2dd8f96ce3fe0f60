# SPDX-License-Identifier: Apache-2.0
"""Runs first on a host that is reached by ssh: finds lagometer there or takes a copy, then becomes the agent.

The conductor sends this file as text to the Python of a host that may have nothing of ours, so it uses only
the standard library. Both sides take turns, one JSON line each (docs/PROTOCOL.md, "Arrival"), so no byte of
the next turn arrives before the current turn ends.
"""

import contextlib
import hashlib
import json
import os
import platform
import select
import shutil
import stat
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

MARK = b"lagometer-arrival "  # before each line to the conductor: a shell may print something, too
PYTHON_MIN = (3, 10)
PATIENCE_S = 30.0  # without a byte from the conductor
PART_BYTES = 1 << 16
KEPT_DAYS = 30  # copies unused for this long are removed
ARRIVING = ".arriving-"
START = (
    "import sys;sys.path.insert(0,sys.argv.pop(1));"
    "from lagometer.agent.serving import serve;sys.exit(serve(sys.argv[1:]))"
)


class ArrivalError(Exception):
    """The agent can't start here. `code` names the kind of problem, for the conductor's advice."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Input:
    """What the conductor writes. Reads no byte more than requested. `remaining`: bytes left of the copy."""

    def __init__(self) -> None:
        self.remaining = 0

    def line(self) -> Any:
        """Returns the next message."""
        text = bytearray()
        while not text.endswith(b"\n"):
            text += self._some(1)
        return json.loads(text)

    def read(self, count: int) -> bytes:
        """Returns the next bytes of the copy, fewer only at its end."""
        content = bytearray()
        while self.remaining and len(content) < count:
            content += self._some(min(count - len(content), self.remaining, PART_BYTES))
        return bytes(content)

    def _some(self, count: int) -> bytes:
        if not select.select([0], [], [], PATIENCE_S)[0]:
            raise ArrivalError("silent", f"nothing came for {PATIENCE_S:.0f} s")
        data = os.read(0, count)
        if not data:
            raise ArrivalError("silent", "the connection ended")
        self.remaining = max(0, self.remaining - len(data))
        return data


def say(**message: Any) -> None:
    """Writes one line to the conductor."""
    data = MARK + json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def hash_of(path: Path) -> str:
    """Returns the SHA-256 of a file; empty if it can't be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    except OSError:
        return ""
    return digest.hexdigest()


def unlike(root: Path, files: dict[str, str]) -> list[str]:
    """Returns the names below `root` whose files are missing or differ."""
    return [name for name, expected in files.items() if hash_of(root / name) != expected]


def cache_folder() -> Path:
    """Returns the folder that holds the copies."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lagometer"


def is_alive(folder: Path) -> bool:
    """Whether the process that takes its copy into this folder still runs."""
    return Path("/proc", folder.name[len(ARRIVING) :]).exists()


def tidy(cache: Path) -> None:
    """Removes incomplete copies, and copies that nobody has used for a long time."""
    for folder in cache.iterdir():
        with contextlib.suppress(OSError):
            if folder.name.startswith(ARRIVING):
                old = not is_alive(folder)
            else:
                # Files are dated by the wall clock.
                old = folder.stat().st_mtime < time.time() - KEPT_DAYS * 86400  # noqa: TID251
            if old:
                shutil.rmtree(folder)


def take_copy(copy: Input, cache: Path, place: Path, files: dict[str, str]) -> None:
    """Unpacks the incoming copy and puts it in its place, completely or not at all. Raises ArrivalError."""
    arriving = cache / f"{ARRIVING}{os.getpid()}"
    try:
        arriving.mkdir(mode=0o700)
        with tarfile.open(mode="r|gz", fileobj=copy) as archive:  # type: ignore[call-overload]
            for member in archive:
                if member.name not in files or not member.isfile():
                    raise ArrivalError("broken", f"{member.name} is not part of the copy")
                target = arriving / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)
                target.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)
        while copy.read(PART_BYTES):
            pass
        if wrong := unlike(arriving, files):
            raise ArrivalError("broken", f"{wrong[0]} did not arrive as it was sent")
        shutil.rmtree(place, ignore_errors=True)
        arriving.replace(place)
    except OSError as error:
        free = "unknown"
        with contextlib.suppress(OSError):
            free = f"{shutil.disk_usage(cache).free >> 20} MiB"
        raise ArrivalError("no-room", f"{cache}: {error.strerror}; free there: {free}") from error
    except tarfile.TarError as error:
        raise ArrivalError("broken", f"the copy did not arrive whole: {error}") from error
    finally:
        shutil.rmtree(arriving, ignore_errors=True)


def find(request: Any, conductor: Input) -> Path:
    """Returns the root folder of the files: an installation, or a copy. Raises ArrivalError."""
    files = request["files"]
    if request["path"]:
        root: Path = Path(request["path"]).expanduser()
        if wrong := unlike(root, request["agent"]):
            problem = "is another one" if (root / wrong[0]).exists() else "is missing"
            raise ArrivalError("another-agent", f"{root / wrong[0]} {problem}")
        return root
    if not unlike(Path(request["root"]), files):
        return Path(request["root"])
    if request["machine"] != platform.machine():
        raise ArrivalError("machine", platform.machine())
    cache = cache_folder()
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        tidy(cache)
    except OSError as error:
        raise ArrivalError("no-room", f"{cache}: {error.strerror}") from error
    place: Path = cache / request["hash"]
    if unlike(place, files):
        say(event="wanted")
        conductor.remaining = int(conductor.line()["bytes"])
        take_copy(conductor, cache, place, files)
    with contextlib.suppress(OSError):
        os.utime(place)
    return place


def supervisor_below(root: Path, name: str) -> str:
    """Returns the path of the supervisor. Raises ArrivalError if it can't run."""
    path = root / name
    if not os.access(path, os.X_OK):
        raise ArrivalError(
            "not-run", f"{path} is missing, or its file system does not allow programs (noexec)"
        )
    return str(path)


def main() -> int:
    """Becomes the agent. Returns only on failure, with the exit code."""
    conductor = Input()
    try:
        say(event="arrived", python=list(sys.version_info[:3]), machine=platform.machine())
        request = conductor.line()
        if sys.version_info < PYTHON_MIN:
            raise ArrivalError("python", f"{sys.executable} is Python {platform.python_version()}")
        root = find(request, conductor)
        package = root / request["package"]
        supervisor = supervisor_below(root, request["supervisor"])
        say(event="found", root=str(root))
        conductor.line()  # from now on the agent reads
        words = [*request["before"], sys.executable, "-I", "-c", START, str(package), supervisor]
        try:
            os.execvp(words[0], words)
        except OSError as error:
            os.write(2, f"{words[0]} can't be started: {error.strerror}\n".encode())
    except ArrivalError as error:
        with contextlib.suppress(OSError):
            say(event="failed", code=error.code, reason=str(error))
    except BrokenPipeError:
        pass
    return 1


if __name__ == "__main__":
    sys.exit(main())
