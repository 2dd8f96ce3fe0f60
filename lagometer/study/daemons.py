# SPDX-License-Identifier: Apache-2.0
"""Which daemons an adapter needs under a study's options, and whether they are installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lagometer.installation import sourced_folders
from lagometer.study.room import MESSAGE_BYTES, MESSAGES
from lagometer.study.sidecar import PROFILE, Daemon, OptionValue

if TYPE_CHECKING:
    from lagometer.study.adapter import Adapter
    from lagometer.study.cell import Cell
    from lagometer.study.hosts import Host
    from lagometer.study.stacking import Options

# Where distributions put daemons; an ordinary user's PATH lacks them.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
LOOPBACK = "127.0.0.1"
_PLACEHOLDER = re.compile(rf"\{{(runtime|profile|address|{MESSAGES}|{MESSAGE_BYTES}|option:[a-z0-9_]+)\}}")


def daemons_in_use(adapter: Adapter, options: Options, profile: str) -> tuple[Daemon, ...]:
    """The daemons that this adapter needs, in start order. `options`: the study's."""
    values = option_values(adapter, options, profile)
    return tuple(daemon for daemon in adapter.sidecar.daemons if _is_wanted(daemon, values))


def option_values(adapter: Adapter, options: Options, profile: str) -> dict[str, OptionValue]:
    """Each option's value, given or default, and the profile. A wrapping adapter uses the wrapped one's."""
    owner = adapter.base or adapter
    defaults = {name: option.default for name, option in owner.sidecar.options.items()}
    return {**defaults, **options.get(owner.name, {}), PROFILE: profile}


def service_address(cell: Cell, hosts: Mapping[str, Host]) -> str:
    """The address at which a cell's workers reach a daemon: the first of several hosts if they can reach each
    other, else the loopback."""
    addresses = [hosts[name].address for name in cell.hosts if name in hosts]
    between_hosts = len(cell.hosts) > 1 and len(addresses) == len(cell.hosts) and all(addresses)
    return addresses[0] if between_hosts else LOOPBACK


def filled_in(text: str, values: Mapping[str, OptionValue], runtime: str, address: str = LOOPBACK) -> str:
    """The text with `{runtime}`, `{profile}`, `{address}` (where daemons run), `{option:NAME}` and the
    placeholders of the room replaced; other braces stay."""

    def value_of(match: re.Match[str]) -> str:
        if match[1] == "address":
            return address
        name = match[1].removeprefix("option:")
        value = runtime if match[1] == "runtime" else values[name]
        return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)

    return _PLACEHOLDER.sub(value_of, text)


def missing_daemons(adapter: Adapter, options: Options, profile: str) -> Iterator[str]:
    """Why the adapter can't be measured here: one sentence for each daemon that is not installed."""
    for daemon in daemons_in_use(adapter, options, profile):
        if find_program(daemon, adapter.directory) is None:
            places = "".join(f" and is not in {place} of {name}" for name, place in daemon.below.items())
            yield (
                f"{adapter.name} needs the daemon {daemon.command[0]}, which is not installed{places} "
                f"(package: {daemon.package})"
            )


def find_program(daemon: Daemon, directory: Path) -> str | None:
    """The path of a daemon's program.

    Searches the adapter's own folder, a sourced installation if the daemon belongs to one, PATH, and the
    other folders where distributions install daemons.
    """
    sourced = sourced_folders(daemon.below)
    folders = (str(directory), *sourced, os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS)
    return shutil.which(daemon.command[0], path=os.pathsep.join(folders))


def _is_wanted(daemon: Daemon, values: Mapping[str, OptionValue]) -> bool:
    if not daemon.only_if:
        return True
    return any(
        all(values[name] in wanted for name, wanted in condition.items()) for condition in daemon.only_if
    )
