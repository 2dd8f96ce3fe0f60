# SPDX-License-Identifier: Apache-2.0
"""Whether a program can be probed: the dynamic linker must be able to load the probe into it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import struct
import sys
from pathlib import Path

from lagometer.errors import BadInput

ELF_MAGIC = b"\x7fELF"
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # 64-bit
SEGMENT = struct.Struct("<IIQQQQQQ")
CLASS_64, LITTLE_ENDIAN = 2, 1
INTERPRETER = 3  # PT_INTERP
SCRIPTS_MAX = 4  # a script whose interpreter is a script, and so on
ATTRIBUTE_OF_CAPABILITIES = "security.capability"


def check_preloading(program: str) -> None:
    """Raises BadInput, with the reason, if the probe can't be loaded into this program."""
    _check(_found(program, "COMMAND"), SCRIPTS_MAX)


def _found(program: str, where: str) -> Path:
    location = shutil.which(program)
    if location is None:
        raise BadInput(f"no executable program '{program}' was found", where=where, hint="name its path")
    return Path(location).resolve()


def _check(path: Path, scripts: int) -> None:
    where = str(path)
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise BadInput(f"can't be read: {error.strerror}", where=where) from error
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n", 1)[0].decode(errors="replace").split()
        if not words or scripts == 0:
            raise BadInput("is a script without an interpreter that can be followed", where=where)
        named = words[0]
        if Path(named).name == "env":
            named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), named)
        _check(_found(named, where), scripts - 1)
        return
    if not head.startswith(ELF_MAGIC):
        raise BadInput("is neither a program nor a script that names its interpreter", where=where)
    _check_machine(head, where)
    if not _has_interpreter(path):
        raise BadInput(
            "is linked statically: nothing can be loaded into it",
            where=where,
            hint="link it dynamically; of static middleware in a dynamic program only socket calls show",
        )
    _check_privileges(path)


def _check_machine(head: bytes, where: str) -> None:
    interpreter = Path(sys.executable).resolve()
    with interpreter.open("rb") as file:
        ours = file.read(HEADER.size)
    if len(head) < HEADER.size or head[4:6] != ours[4:6] or head[18:20] != ours[18:20]:
        raise BadInput("is a program for another kind of processor than the probe", where=where)


def _has_interpreter(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        if head[4:6] != bytes((CLASS_64, LITTLE_ENDIAN)):
            return True  # not our kind of file; the linker will report it
        fields = HEADER.unpack(head)
        at, size, count = fields[5], fields[9], fields[10]
        file.seek(at)
        table = file.read(size * count)
    starts = range(0, len(table) - SEGMENT.size + 1, max(size, SEGMENT.size))
    return any(SEGMENT.unpack_from(table, start)[0] == INTERPRETER for start in starts)


def _check_privileges(path: Path) -> None:
    """A program that gains privileges ignores preloaded libraries."""
    status = path.stat()
    gains = (status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()) or (
        status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    )
    with contextlib.suppress(OSError):  # it has none
        gains = gains or (os.geteuid() != 0 and bool(os.getxattr(path, ATTRIBUTE_OF_CAPABILITIES)))
    if gains:
        raise BadInput(
            "gains rights when it starts (set-uid, set-gid or capabilities), so it ignores what is preloaded",
            where=str(path),
            hint="run a copy without them, or as that user",
        )
