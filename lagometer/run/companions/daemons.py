# SPDX-License-Identifier: Apache-2.0
"""The daemons that a trial needs next to its workers, such as a broker, with their texts filled in."""

from __future__ import annotations

from collections.abc import Mapping

from lagometer.agent.commands import Companion
from lagometer.agent.daemons import Ready, Wanted
from lagometer.run.companions.pinning import pinned_words
from lagometer.study import Adapter, Cell
from lagometer.study.daemons import LOOPBACK, daemons_in_use, filled_in, find_program, option_values
from lagometer.study.room import UNKNOWN_ROOM, room_for
from lagometer.study.stacking import Options


def wanted_daemons(
    cell: Cell, adapters: Mapping[str, Adapter], runtime: str, address: str = LOOPBACK
) -> tuple[Wanted, ...]:
    """Returns the daemons of a cell, each once, with their texts filled in for a trial in the folder
    `runtime`. address: where its workers reach them."""
    factors = cell.factors
    pinned = pinned_words(cell)
    room = room_for(cell)
    daemons: list[Wanted] = []
    for name in cell.adapters:
        adapter_daemons = filled_daemons(
            adapters[name], cell.options, factors.profile, runtime, pinned, room, address
        )
        daemons += [daemon for daemon in adapter_daemons if not any(map(daemon.is_like, daemons))]
    return tuple(daemons)


def filled_daemons(
    adapter: Adapter,
    options: Options,
    profile: str,
    runtime: str,
    before: tuple[str, ...] = (),
    room: Mapping[str, int] = UNKNOWN_ROOM,
    address: str = LOOPBACK,
) -> tuple[Wanted, ...]:
    """Returns the daemons of one adapter, with their texts filled in. `before`: words before each command;
    `room`: the space that its messages need."""
    values = {**option_values(adapter, options, profile), **room}

    def filled(text: str) -> str:
        return filled_in(text, values, runtime, address)

    daemons = []
    for daemon in daemons_in_use(adapter, options, profile):
        program, *words = daemon.command
        arguments = (*before, find_program(daemon, adapter.directory) or program, *map(filled, words))
        shared_variables = {name: filled(text) for name, text in daemon.environment.items()}
        own_variables = {name: filled(text) for name, text in daemon.own_environment.items()}
        texts = {key: filled(getattr(daemon.ready, key) or "") or None for key in ("unix_socket", "file")}
        daemons.append(
            Wanted(
                name=daemon.name,
                companion=Companion(arguments, {**shared_variables, **own_variables}, daemon=True),
                ready=Ready(**{**daemon.ready.model_dump(), **texts}),
                for_workers=shared_variables,
                files={name: filled(text) for name, text in daemon.files.items()},
                leaves=daemon.leaves,
            )
        )
    return tuple(daemons)
