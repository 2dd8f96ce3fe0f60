# SPDX-License-Identifier: Apache-2.0
"""The folder of a campaign while it is written: its place, its journal, and a full disk as a clear error."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from lagometer.errors import BadInput, CannotStore
from lagometer.store.format import MANIFEST

MOVED_MAX = 10_000


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turns whatever the file system refuses into `CannotStore`, with the file's name."""
    try:
        yield
    except OSError as error:
        where = str(error.filename) if error.filename is not None else str(path)
        raise CannotStore(
            f"can't be written: {error.strerror or error}",
            where=where,
            mend="free some space or choose another folder with --out, then go on with --resume",
        ) from error


def prepare_folder(directory: Path, resume: bool) -> Path | None:
    """Makes the folder of a campaign; returns where an older one was moved, if there was one.

    Nothing is ever overwritten: what lies at `directory` moves to `directory.1` (`.2`, …), unless `resume`.
    Raises `BadInput` for a place that can't be moved, `CannotStore` where the file system refuses.
    """
    moved = None
    with storing(directory):
        if resume and (directory / MANIFEST).is_file():
            return None
        if os.path.lexists(directory) and not _is_empty_folder(directory):
            moved = _move_away(directory)
        directory.mkdir(parents=True, exist_ok=True)
    return moved


def _is_empty_folder(directory: Path) -> bool:
    return directory.is_dir() and not any(directory.iterdir())


def _move_away(directory: Path) -> Path:
    absolute = directory.absolute()
    here = Path.cwd()
    if directory.resolve() == here or directory.resolve() in here.parents:
        raise BadInput(
            "is this very folder or lies above it, and an existing folder would be moved away",
            where=f"--out {directory}",
            mend="name a folder of its own",
        )
    for number in range(1, MOVED_MAX):
        target = absolute.with_name(f"{absolute.name}.{number}")
        if not os.path.lexists(target):
            absolute.rename(target)
            return target
    raise BadInput(
        f"has {MOVED_MAX - 1} older copies beside it", where=f"--out {directory}", mend="clear them up"
    )


class Journal:
    """The append-only list of finished trials: a JSON object a line, on the disk before the next begins."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, object]]:
        """Returns the finished trials, and cuts off a last line that a power cut left incomplete."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with storing(self._path):
                os.truncate(self._path, len(whole))
        try:
            return [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise BadInput(
                f"is damaged: {error}", where=str(self._path), mend="run without --resume"
            ) from error

    def append(self, entry: dict[str, object]) -> None:
        """Adds one trial; if that fails the file is as before. Raises OSError with file and bytes needed."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        before = self.size()
        try:
            descriptor = os.open(self._path, flags, 0o644)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.cut(before)
            what = f"{error.strerror}; {len(line)} bytes were to be written"
            raise OSError(error.errno, what, str(self._path)) from error

    def size(self) -> int:
        """Returns the length of the file in bytes, for `cut`."""
        return self._path.stat().st_size if self._path.exists() else 0

    def cut(self, size_bytes: int) -> None:
        """Takes back what was added after the file had this size."""
        if self._path.exists():
            os.truncate(self._path, size_bytes)
