# SPDX-License-Identifier: Apache-2.0
"""Reads a shared library's file: the symbols that it exports.

Supports 64-bit little-endian ELF, as in "System V Application Binary Interface", chapter 4 ("Object Files").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DYNSYM = 11
_UNDEFINED = 0
_GLOBAL = 1
_HIDDEN = (1, 2)  # internal, hidden


@dataclass(frozen=True)
class _Section:
    kind: int
    content: bytes
    link: int


def exported_symbols(library: Path) -> set[str]:
    """The names that others can link to. Raises `ValueError` if the file is not such a library.

    Without the weak ones: compilers generate these from the standard library's templates.
    """
    sections = list(_sections(library.read_bytes(), library))
    symbols = set()
    for section in sections:
        if section.kind != _DYNSYM:
            continue
        names = sections[section.link].content
        for name, info, other, index, _, _ in struct.iter_unpack("<IBBHQQ", section.content):
            exported = info >> 4 == _GLOBAL and other & 3 not in _HIDDEN and index != _UNDEFINED
            if exported and name:
                symbols.add(_text(names, name))
    return symbols


def _sections(content: bytes, path: Path) -> Iterator[_Section]:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a shared library for this kind of machine")
    (begin,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", content, begin + number * size) for number in range(count)]
    for _, kind, _, _, at, length, link, _, _, _ in headers:
        section_content = b"" if kind == 8 else content[at : at + length]  # 8: it has no content in the file
        yield _Section(kind, section_content, link)


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")
