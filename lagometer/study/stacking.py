# SPDX-License-Identifier: Apache-2.0
"""Adapters that stand on another one: what they can do is what the adapter beneath can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lagometer.errors import BadInput
from lagometer.study.adapter import Adapter
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import nearest

Options = Mapping[str, Mapping[str, OptionValue]]
INHERITED = (
    "scope",
    "dlopen_flags",
    "environment",
    "preload",
    "daemons",
    "shared_memory",
    "message_queues",
    "abilities",
    "limits",
)


def stand(adapters: Mapping[str, Adapter], options: Options) -> dict[str, Adapter]:
    """The adapters, each that stands on another with what it inherits from it (of the payload types, those
    that it knows itself). Raises BadInput.

    Its messages are those of the adapter beneath: the two understand each other, and whomever that one does.
    """
    result = dict(adapters)
    for name, adapter in adapters.items():
        key = adapter.sidecar.stacks_on
        if key is None:
            continue
        beneath = _beneath(name, key, adapters, options)
        if beneath is None:
            continue
        result[name] = _standing(adapter, beneath, options)
        for other, each in adapters.items():
            if other == beneath.name or beneath.name in each.sidecar.interoperates_with:
                result[other] = _understanding(result[other], name)
    return result


def _beneath(name: str, key: str, adapters: Mapping[str, Adapter], options: Options) -> Adapter | None:
    """None: the study does not say, and the usual one is not there."""
    given = options.get(name, {}).get(key)
    wanted = str(given or adapters[name].sidecar.options[key].default)
    found = adapters.get(wanted)
    if found is None and given is None:
        return None
    if found is None or found.sidecar.stacks_on is not None:
        known = [other for other, each in adapters.items() if each.sidecar.stacks_on is None]
        raise BadInput(
            f"'{wanted}' is no adapter to stand on",
            where=f"options.{name}.{key}",
            mend=nearest(wanted, known),
        )
    return found


def _standing(adapter: Adapter, beneath: Adapter, options: Options) -> Adapter:
    inherited = {key: getattr(beneath.sidecar, key) for key in INHERITED}
    # It looks into messages, so it passes on no type that it does not know.
    beneath_types, known = beneath.sidecar.abilities.types, adapter.sidecar.abilities.types
    types = tuple(kind for kind in beneath_types if kind in known)
    inherited["abilities"] = beneath.sidecar.abilities.model_copy(update={"types": types})
    inherited["interoperates_with"] = (*beneath.sidecar.interoperates_with, beneath.name)
    other_worker = None
    if beneath.sidecar.worker != adapter.sidecar.worker:
        other_worker = f"it can't stand on {beneath.name}, which runs in the worker {beneath.sidecar.worker}"
    return replace(
        adapter,
        sidecar=adapter.sidecar.model_copy(update=inherited),
        missing=other_worker or adapter.missing or beneath.missing,
        fixed_options={"library": str(beneath.library), "inner": dict(options.get(beneath.name, {}))},
        beneath=beneath,
    )


def _understanding(adapter: Adapter, name: str) -> Adapter:
    both = (*adapter.sidecar.interoperates_with, name)
    return replace(adapter, sidecar=adapter.sidecar.model_copy(update={"interoperates_with": both}))
