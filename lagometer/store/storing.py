# SPDX-License-Identifier: Apache-2.0
"""A campaign's folder while it is written: its location, its journal, and a clear error for a full disk."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lagometer.errors import BadInput, CannotStore
from lagometer.store.errors import CampaignError
from lagometer.store.format import MANIFEST, sync_folder
from lagometer.store.reader import read_journal

MOVED_MAX = 10_000


ROOM_AND_RESUME = "free some space or choose another folder with --out, then continue with --resume"
ROOM_OR_ELSEWHERE = "free some space, or write it elsewhere"


@contextlib.contextmanager
def storing(path: Path, hint: str = ROOM_AND_RESUME) -> Iterator[None]:
    """Turns any file system error into `CannotStore`, with the file's name and what to do."""
    try:
        yield
    except OSError as error:
        where = str(error.filename) if error.filename is not None else str(path)
        raise CannotStore(
            f"can't be written: {error.strerror or error}",
            where=where,
            hint=hint,
        ) from error


def prepare_folder(directory: Path, resume: bool) -> Path | None:
    """Creates a campaign's folder; returns where an older one was moved, if there was one.

    Nothing is ever overwritten: an existing `directory` moves to `directory.1` (`.2`, …), unless `resume`.
    Raises `BadInput` for a path that can't be moved, `CannotStore` for a file system error.
    """
    moved = None
    with storing(directory):
        if not (resume and (directory / MANIFEST).is_file()):
            if os.path.lexists(directory) and not _is_empty_folder(directory):
                moved = _move_away(directory)
            make_folders(directory)
        # An existing folder may not be on the disk yet: `mkdir` or a killed process may have just created it.
        with contextlib.suppress(PermissionError):
            sync_folder(directory.parent)
    return moved


def make_folders(directory: Path) -> None:
    """Creates a folder and its parents, all of them synced to the disk on return. Raises OSError."""
    if directory.is_dir():
        return
    make_folders(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_folder(directory.parent)


def _is_empty_folder(directory: Path) -> bool:
    """Whether it is empty, or contains only what a kill left before there was a campaign."""
    return directory.is_dir() and all(path.name == f".{MANIFEST}.partial" for path in directory.iterdir())


def _move_away(directory: Path) -> Path:
    absolute = directory.absolute()
    here = Path.cwd()
    if directory.resolve() == here or directory.resolve() in here.parents:
        raise BadInput(
            "is the current folder or contains it, and an existing folder would be moved away",
            where=f"--out {directory}",
            hint="name another folder",
        )
    for number in range(1, MOVED_MAX):
        target = absolute.with_name(f"{absolute.name}.{number}")
        if not os.path.lexists(target):
            absolute.rename(target)
            return target
    raise BadInput(
        f"already has {MOVED_MAX - 1} older copies next to it",
        where=f"--out {directory}",
        hint="remove some of them",
    )


class Journal:
    """The append-only list of finished trials: one JSON object per line, synced before the next trial."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, Any]]:
        """Returns the finished trials, and cuts off a last line that a kill or a power cut left incomplete.

        Everything it returns is on the disk. Raises `BadInput` for damage elsewhere, and `CannotStore`.
        """
        try:
            entries = read_journal(self._path)
        except CampaignError as error:
            raise BadInput(str(error), hint="run without --resume") from error
        if self._path.exists():
            with storing(self._path), self._path.open("rb") as stream:
                whole_bytes = sum(len(line) for line, _ in zip(stream, entries, strict=False))
                self.cut(whole_bytes)
                self._settle()
        return list(entries)

    def append(self, entry: Mapping[str, object]) -> None:
        """Adds one trial; if that fails, the file is unchanged. Raises OSError with file and bytes needed."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        is_new, size_before = not self._path.exists(), self.size()
        try:
            descriptor = os.open(self._path, flags, 0o644)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self._path.parent)
        except OSError as error:
            self.cut(size_before)
            message = f"{error.strerror}; {len(line)} bytes were to be written"
            raise OSError(error.errno, message, str(self._path)) from error

    def _settle(self) -> None:
        """Syncs what a killed process appended last, because it counts from now on."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size(self) -> int:
        """Returns the length of the file in bytes, for `cut`."""
        return self._path.stat().st_size if self._path.exists() else 0

    def cut(self, size_bytes: int) -> None:
        """Removes what was added after the file had this size. Raises OSError."""
        if self.size() <= size_bytes:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, size_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
