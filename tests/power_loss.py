# SPDX-License-Identifier: Apache-2.0
"""What a loss of power may leave of a folder: records what a program does to files, and gives every state.

POSIX promises that what a file held at its last sync is there, and what a folder named at its last sync. Of
whatever came later, any part may be: a name without its content, a content without its name, half of a write,
zeros instead of it. Only two changes of the same name are taken to land in their order.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT_INODE = 0
FEW = 5  # changes of a folder of which every choice is tried
# Functions between a sync and whoever wants it.
_THROUGH = ("sync_folder", "write", "_naming", "<lambda>")


class Killed(BaseException):
    """The process is gone: nothing that it would have done any more is done."""


@dataclass(frozen=True)
class Named:
    """A change of what a folder names. inode: what `name` is now, None for nothing."""

    folder: int
    name: str
    inode: int | None
    moved_from: str | None = None
    is_new_folder: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names that it touches."""
        return frozenset((self.name, self.moved_from or self.name))


@dataclass(frozen=True)
class Written:
    """Bytes that were written `at` a place; cut_to: instead, the size that the file was given."""

    inode: int
    at: int
    content: bytes
    cut_to: int | None = None

    def applied(self, before: bytes) -> bytes:
        if self.cut_to is not None:
            return before[: self.cut_to].ljust(self.cut_to, b"\0")
        head = before[: self.at].ljust(self.at, b"\0")
        return head + self.content + before[self.at + len(self.content) :]


@dataclass(frozen=True)
class Synced:
    """A file or folder was synced; by: the function that wanted it, and of which of the two."""

    inode: int
    by: tuple[str, str]


@dataclass(frozen=True)
class Noted:
    """What the program told its user at this moment."""

    what: str
    about: object


Operation = Named | Written | Synced | Noted
Files = dict[str, bytes | None]  # by path; None: a folder


@dataclass
class _Opened:
    inode: int
    path: Path
    at: int
    appends: bool


class Recorder:
    """Notes every change of what lies below `root`, which is carried out as well.

    `kill_at`: before the operation of that number the process is killed. `refuse`: whether there is no room
    for a write to a file. Changes that go other ways than `os` and `Path` are not seen: `seen` tells.
    """

    def __init__(self, root: Path) -> None:
        self.operations: list[Operation] = []
        self.kill_at: int | None = None
        self.refuse: Callable[[Path], bool] = lambda _: False
        self._root = root
        self._inodes = itertools.count(1)
        self._folders: dict[int, dict[str, int]] = {ROOT_INODE: {}}
        self._contents: dict[int, bytes] = {}
        self._opened: dict[int, _Opened] = {}

    def note(self, what: str, about: object) -> None:
        """Notes what the program told."""
        self._add(Noted(what, about))

    def revive(self) -> None:
        """Another process goes on after a kill."""
        self.kill_at = None
        self._opened.clear()

    @property
    def seen(self) -> Files:
        """What lies below the root, as far as it was seen."""
        return _tree(ROOT_INODE, self._folders, self._contents)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Begins to note, until `patch` is undone."""
        for name in ("open", "close", "write", "fsync", "fdatasync", "ftruncate"):
            patch.setattr(os, name, self._instead(name, getattr(os, name)))
        for name in ("mkdir", "unlink", "rename", "replace"):
            patch.setattr(Path, name, self._instead(name, getattr(Path, name)))

    def _instead(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        method = getattr(self, f"_{name}")

        def instead(*arguments: Any, **named: Any) -> Any:
            return method(real, *arguments, **named)

        return instead

    def _add(self, operation: Operation) -> None:
        if self.kill_at is not None and len(self.operations) >= self.kill_at:
            raise Killed
        self.operations.append(operation)
        if isinstance(operation, Written):
            before = self._contents.get(operation.inode, b"")
            self._contents[operation.inode] = operation.applied(before)
        elif isinstance(operation, Named):
            _rename(self._folders[operation.folder], operation)
            if operation.is_new_folder and operation.inode is not None:
                self._folders[operation.inode] = {}

    def _place(self, path: Path | str) -> tuple[int, str] | None:
        """The folder's inode and the name in it; None outside of the root."""
        try:
            parts = Path(path).absolute().relative_to(self._root).parts
        except ValueError:
            return None
        if not parts:
            return None
        folder = ROOT_INODE
        for part in parts[:-1]:
            if part not in self._folders.get(folder, {}):
                return None
            folder = self._folders[folder][part]
        return folder, parts[-1]

    def _inode(self, path: Path | str) -> int | None:
        if Path(path).absolute() == self._root:
            return ROOT_INODE
        place = self._place(path)
        return self._folders[place[0]].get(place[1]) if place is not None else None

    def _open(self, real: Callable[..., int], path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        inode, place = self._inode(path), self._place(path)
        if place is not None and inode is None and flags & os.O_CREAT:
            inode = next(self._inodes)
            self._add(Named(place[0], place[1], inode))
            self._contents[inode] = b""
        elif inode is not None and flags & os.O_TRUNC and self._contents[inode]:
            self._add(Written(inode, 0, b"", cut_to=0))
        descriptor = real(path, flags, mode, **named)
        if inode is not None:
            self._opened[descriptor] = _Opened(inode, Path(path), 0, bool(flags & os.O_APPEND))
        return descriptor

    def _close(self, real: Callable[[int], None], descriptor: int) -> None:
        self._opened.pop(descriptor, None)
        real(descriptor)

    def _write(self, real: Callable[..., int], descriptor: int, content: Any) -> int:
        opened = self._opened.get(descriptor)
        if opened is None:
            return real(descriptor, content)
        if self.refuse(opened.path):
            raise OSError(28, "No space left on device")
        at = len(self._contents[opened.inode]) if opened.appends else opened.at
        self._add(Written(opened.inode, at, bytes(content)))
        written = real(descriptor, content)
        assert written == len(content), "a short write, of which nothing is known here"
        opened.at = at + written
        return written

    def _ftruncate(self, real: Callable[[int, int], None], descriptor: int, size_bytes: int) -> None:
        if descriptor in self._opened:
            self._add(Written(self._opened[descriptor].inode, 0, b"", cut_to=size_bytes))
        real(descriptor, size_bytes)

    def _fsync(self, real: Callable[[int], None], descriptor: int) -> None:
        if descriptor not in self._opened:
            real(descriptor)
            return
        inode = self._opened[descriptor].inode
        self._add(Synced(inode, (_asking(), "folder" if inode in self._folders else "file")))

    _fdatasync = _fsync

    def _mkdir(self, real: Callable[..., None], path: Path, *arguments: Any, **named: Any) -> None:
        place = self._place(path)
        if place is not None and self._inode(path) is None:
            self._add(Named(*place, next(self._inodes), is_new_folder=True))
        real(path, *arguments, **named)

    def _unlink(self, real: Callable[..., None], path: Path, *arguments: Any, **named: Any) -> None:
        place = self._place(path)
        if place is not None and self._inode(path) is not None:
            self._add(Named(*place, None))
        real(path, *arguments, **named)

    def _rename(self, real: Callable[..., Any], path: Path, target: Path | str) -> Any:
        before, after, inode = self._place(path), self._place(target), self._inode(path)
        if before is not None and after is not None and inode is not None:
            assert before[0] == after[0], "from folder to folder, which is not atomic here"
            self._add(Named(after[0], after[1], inode, moved_from=before[1]))
        return real(path, target)

    _replace = _rename


def on_disk(root: Path) -> Files:
    """What really lies below a folder."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in root.rglob("*")
    }


def build(files: Files, root: Path) -> None:
    """Makes such a folder."""
    root.mkdir()
    for name, content in sorted(files.items()):
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)


@dataclass(frozen=True)
class Crash:
    """What is left when the power fails after so many operations."""

    after: int
    files: Files


def crashes(
    operations: Sequence[Operation], generator: random.Random, most: int, begin: int = 0
) -> Iterator[Crash]:
    """The states that a loss of power after each operation from `begin` on may leave.

    All of them where they are at most `most`, else the extremes and as many that are drawn.
    """
    disk = _Disk()
    for count in range(len(operations) + 1):
        if count:
            disk.take(operations[count - 1])
        if count >= begin:
            yield from (Crash(count, files) for files in disk.states(generator, most))


def least(operations: Sequence[Operation], count: int) -> Crash:
    """What is left after so many operations if nothing landed but what was synced."""
    disk = _Disk()
    for operation in operations[:count]:
        disk.take(operation)
    return Crash(count, next(disk.states(random.Random(0), 1)))


class _Disk:
    """What is on the disk for certain, and what may be there."""

    def __init__(self) -> None:
        self._folders: dict[int, dict[str, int]] = {ROOT_INODE: {}}
        self._contents: dict[int, bytes] = {}
        self._changes: dict[int, list[Named]] = {}
        self._writes: dict[int, list[Written]] = {}

    def take(self, operation: Operation) -> None:
        if isinstance(operation, Named):
            self._changes.setdefault(operation.folder, []).append(operation)
            if operation.is_new_folder and operation.inode is not None:
                self._folders[operation.inode] = {}
        elif isinstance(operation, Written):
            self._writes.setdefault(operation.inode, []).append(operation)
        elif isinstance(operation, Synced):
            for change in self._changes.pop(operation.inode, ()):
                _rename(self._folders[operation.inode], change)
            for write in self._writes.pop(operation.inode, ()):
                before = self._contents.get(operation.inode, b"")
                self._contents[operation.inode] = write.applied(before)

    def states(self, generator: random.Random, most: int) -> Iterator[Files]:
        """The first is the one in which nothing has landed, the second the one in which everything has."""
        landings = {inode: _landings(changes) for inode, changes in self._changes.items()}
        fates = {
            inode: _fates(self._contents.get(inode, b""), writes) for inode, writes in self._writes.items()
        }
        sizes = [len(each) for each in (*landings.values(), *fates.values())]
        for pick in _picks(sizes, len(landings), generator, most):
            folders, contents = dict(self._folders), dict(self._contents)
            for (inode, choices), place in zip(landings.items(), pick, strict=False):
                folders[inode] = dict(folders[inode])
                for number in sorted(choices[place]):
                    _rename(folders[inode], self._changes[inode][number])
            for (inode, possible), place in zip(fates.items(), pick[len(landings) :], strict=True):
                contents[inode] = possible[place]
            yield _tree(ROOT_INODE, folders, contents)


def _rename(names: dict[str, int], change: Named) -> None:
    if change.moved_from is not None:
        names.pop(change.moved_from, None)
    if change.inode is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.inode


def _tree(inode: int, folders: dict[int, dict[str, int]], contents: dict[int, bytes]) -> Files:
    files: Files = {}
    for name, child in folders[inode].items():
        if child in folders:
            files[name] = None
            files |= {f"{name}/{path}": each for path, each in _tree(child, folders, contents).items()}
        else:
            files[name] = contents.get(child, b"")
    return files


def _landings(changes: Sequence[Named]) -> list[frozenset[int]]:
    """Which changes of a folder may be there, by their numbers; first none of them, last all.

    Of many: each first part, and all but one and those that rest on it.
    """
    needs = [
        frozenset(before for before in range(number) if changes[before].names & change.names)
        for number, change in enumerate(changes)
    ]
    found = [frozenset[int]()]
    if len(changes) <= FEW:
        for number, needed in enumerate(needs):
            found += [landed | {number} for landed in found if needed <= landed]
        return found
    for absent in range(len(changes)):
        landed = frozenset[int]()
        for number, needed in enumerate(needs):
            if number != absent and needed <= landed:
                landed |= {number}
        found += [frozenset(range(absent)), landed]
    return [*found, frozenset(range(len(changes)))]


def _fates(before: bytes, writes: Sequence[Written]) -> list[bytes]:
    """What a file may hold; first what it held before, last what was meant."""
    found: dict[bytes, None] = {}
    content = before
    for write in writes:
        half, size = len(write.content) // 2, len(write.content)
        torn = (
            write.content[:half],
            write.content[:half].ljust(size, b"\0"),
            bytes(half) + write.content[half:],
            bytes(size),
        )
        parts = [Written(write.inode, write.at, part) for part in torn if write.cut_to is None]
        found |= {part.applied(start): None for part in (*parts, write) for start in (before, content)}
        content = write.applied(content)
    return [before, *(each for each in found if each not in (before, content)), content]


def _picks(
    sizes: Sequence[int], names: int, generator: random.Random, most: int
) -> Iterator[tuple[int, ...]]:
    """Which choice of each; the first `names` are of folders, the others of files."""
    first, last = (0,) * len(sizes), tuple(size - 1 for size in sizes)
    yield first
    yield last
    if math.prod(sizes) <= most:
        yield from itertools.product(*map(range, sizes))
        return
    yield first[:names] + last[names:]
    yield last[:names] + first[names:]
    for place, size in enumerate(sizes):
        for choice in range(size):
            yield (*last[:place], choice, *last[place + 1 :])
    for _ in range(most):
        yield tuple(generator.randrange(size) for size in sizes)


def _asking() -> str:
    """The name of the function that wants a sync."""
    frame = sys._getframe(1)
    here = __file__
    while frame.f_back is not None:
        name = frame.f_code.co_name
        if frame.f_code.co_filename != here and name not in _THROUGH:
            return name
        frame = frame.f_back
    return "?"
