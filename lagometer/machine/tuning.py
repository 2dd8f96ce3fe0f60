# SPDX-License-Identifier: Apache-2.0
"""Tunes the machine for low latency and reverts it.

The previous settings are written to a state file, which is synced before any change. A tuning is in force as
long as its holder lives. If the holder is dead, the next command reverts what is left of the tuning.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lagometer.machine.holder import Holder, end_holder, start_holder
from lagometer.machine.settings import DMA_LATENCY, Wanted, read, wanted

STATE_FOLDER = Path("/run/lagometer")
STATE = "tuning.json"


class TuningError(Exception):
    """The machine can't be tuned, or can't be reverted. Says what and why."""


@dataclass(frozen=True)
class Change:
    """One setting. before, after: the contents of its file; verdict: `changed`, `already` (as wanted),
    `refused` (`why` names the cause), `absent`; after reverting `restored` or `left` (someone else has
    changed it)."""

    name: str
    path: str
    before: str | None
    after: str | None
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Tuning:
    """A tuning in the state file. complete: every change was tried; lasting: until `revert`, otherwise it
    ends with the process that made it."""

    changes: tuple[Change, ...]
    holder: Holder | None
    boot: str
    complete: bool
    lasting: bool

    @property
    def in_force(self) -> bool:
        """Whether its holder lives."""
        return self.holder is not None and self.holder.is_alive()

    @property
    def effective(self) -> bool:
        """Whether at least one setting has its wanted value only because of the tuning."""
        held = self.holder is not None and not self.holder.said
        return held or any(change.verdict == "changed" for change in self.changes)

    def as_json(self) -> dict[str, Any]:
        """Returns it in the state file's form."""
        holder = self.holder.as_json() if self.holder is not None else None
        return {**asdict(self), "holder": holder, "changes": [asdict(change) for change in self.changes]}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Tuning:
        """Reads the output of `as_json`."""
        holder = Holder.of_json(value["holder"]) if value["holder"] is not None else None
        changes = tuple(Change(**change) for change in value["changes"])
        return cls(changes, holder, str(value["boot"]), bool(value["complete"]), bool(value["lasting"]))


class Tuner:
    """Tunes the machine whose files are below `root`. `folder` keeps the previous settings."""

    def __init__(self, root: Path = Path("/"), folder: Path = STATE_FOLDER) -> None:
        self._root = root
        self._folder = folder

    def status(self) -> Tuning | None:
        """The tuning in the state file; None if there is none. Raises `TuningError`."""
        path = self._folder / STATE
        try:
            return Tuning.of_json(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TuningError(
                f"{path} can't be read ({error}); restore it by hand, then remove it"
            ) from error

    def apply(self, *, lasting: bool) -> Tuning:
        """Tunes the machine. First reverts what is left of an earlier tuning.

        Raises `TuningError` if a tuning is in force, or if the state file can't be written.
        """
        with self._locked():
            self._recover()
            if self.status() is not None:
                raise TuningError("the machine is tuned already (`lagometer tune-host revert` restores it)")
            planned = [self._planned(setting) for setting in wanted(self._root)]
            tuning = Tuning(tuple(planned), None, _boot(), complete=False, lasting=lasting)

            def note(holder: Holder) -> None:
                nonlocal tuning
                tuning = replace(tuning, holder=holder)
                self._write(tuning)  # before anything is changed

            try:
                start_holder(self._root / DMA_LATENCY, note, with_parent=not lasting)
                tuning = replace(tuning, changes=tuple(map(self._change, planned)), complete=True)
                self._write(tuning)
            except BaseException as error:
                self._put_back(tuning)
                if isinstance(error, OSError):
                    raise TuningError(str(error)) from error
                raise
            return tuning

    def revert(self) -> list[Change]:
        """Reverts everything. Returns what happened to each setting, nothing if there was no tuning.

        Raises `TuningError`.
        """
        with self._locked():
            tuning = self.status()
            return self._put_back(tuning) if tuning is not None else []

    def recover(self) -> list[Change]:
        """Reverts what is left of a tuning whose holder is dead (kill -9, for example). Raises
        `TuningError`."""
        if not (self._folder / STATE).exists():
            return []
        with self._locked():
            return self._recover()

    def _recover(self) -> list[Change]:
        tuning = self.status()
        return self._put_back(tuning) if tuning is not None and not tuning.in_force else []

    def _planned(self, setting: Wanted) -> Change:
        """A change as it is recorded before it is made: `after` is the value to write."""
        current = None if setting.obstacle else read(self._root, setting.path)
        if current is None:
            return Change(
                setting.name, setting.path, None, None, "absent", setting.obstacle or "it can't be read"
            )
        return Change(
            setting.name,
            setting.path,
            current,
            setting.value,
            "already" if current == setting.value else "changed",
        )

    def _change(self, planned: Change) -> Change:
        if planned.verdict != "changed":
            return planned
        assert planned.after is not None
        refusal = self._set(planned.path, planned.after)
        after = read(self._root, planned.path)
        if refusal:
            return replace(planned, after=after, verdict="refused", why=refusal)
        if after == planned.before:
            return replace(
                planned, after=after, verdict="refused", why="the kernel accepted it and kept the old value"
            )
        return replace(planned, after=after)

    def _set(self, path: str, value: str) -> str:
        """Writes one setting. Returns why it failed, empty if it worked."""
        try:
            descriptor = os.open(self._root / path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(descriptor, value.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _put_back(self, tuning: Tuning) -> list[Change]:
        """Reverts what is still as the tuning left it, ends the holder, and deletes the state file."""
        changes = []
        if tuning.boot == _boot():  # otherwise a restart has reverted everything
            changes = [
                self._restore(change, tuning.complete)
                for change in tuning.changes
                if change.verdict == "changed"
            ]
        if tuning.holder is not None:
            end_holder(tuning.holder)
        failed = [change for change in changes if change.verdict == "refused"]
        if failed:
            self._write(
                replace(tuning, changes=tuple(replace(change, verdict="changed") for change in failed))
            )
            raise TuningError(
                "could not be restored: "
                + "; ".join(f"{change.name} to {change.before}: {change.why}" for change in failed)
            )
        with contextlib.suppress(FileNotFoundError):
            (self._folder / STATE).unlink()
        return changes

    def _restore(self, change: Change, complete: bool) -> Change:
        """Without `complete` it is not known whether the change was made, nor how the kernel spells the
        value."""
        current = read(self._root, change.path)
        if current == change.before:
            return replace(change, verdict="restored")
        if complete and current != change.after:
            return replace(change, verdict="left", why=f"something else has set it to {current}")
        refusal = self._set(change.path, change.before or "")
        return replace(change, verdict="refused" if refusal else "restored", why=refusal)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other lagometers from tuning at the same time."""
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise TuningError(f"{self._folder}: {error.strerror}; tuning needs root") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, tuning: Tuning) -> None:
        """Writes the state file, completely or not at all, and syncs it. Raises `TuningError`."""
        path = self._folder / STATE
        partial = path.with_name(f".{STATE}.partial")
        try:
            with partial.open("w", encoding="utf-8") as stream:
                json.dump(tuning.as_json(), stream, indent=2)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(path)
        except OSError as error:
            raise TuningError(f"{path}: {error.strerror}; tuning needs root") from error


def _boot() -> str:
    """Identifies this boot of the machine."""
    return read(Path("/"), "proc/sys/kernel/random/boot_id") or ""
