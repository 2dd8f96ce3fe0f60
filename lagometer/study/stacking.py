# SPDX-License-Identifier: Apache-2.0
"""Adapters that wrap another one: they have the abilities of the wrapped adapter."""

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
    """The adapters; each that wraps another has what it inherits from it (of the payload types, only those
    that it knows itself). Raises BadInput.

    It sends the wrapped adapter's messages: the two understand each other, and the same others.
    """
    result = dict(adapters)
    for name, adapter in adapters.items():
        key = adapter.sidecar.stacks_on
        if key is None:
            continue
        base = _base(name, key, adapters, options)
        if base is None:
            continue
        result[name] = _standing(adapter, base, options)
        for other, other_adapter in adapters.items():
            if other == base.name or base.name in other_adapter.sidecar.interoperates_with:
                result[other] = _understanding(result[other], name)
    return result


def _base(name: str, key: str, adapters: Mapping[str, Adapter], options: Options) -> Adapter | None:
    """None: the study does not name one, and the usual one is not available."""
    choice = options.get(name, {}).get(key)
    wanted = str(choice or adapters[name].sidecar.options[key].default)
    base = adapters.get(wanted)
    if base is None and choice is None:
        return None
    if base is None or base.sidecar.stacks_on is not None:
        known = [other for other, adapter in adapters.items() if adapter.sidecar.stacks_on is None]
        raise BadInput(
            f"'{wanted}' is not an adapter to wrap",
            where=f"options.{name}.{key}",
            hint=nearest(wanted, known),
        )
    return base


def _standing(adapter: Adapter, base: Adapter, options: Options) -> Adapter:
    inherited = {key: getattr(base.sidecar, key) for key in INHERITED}
    # It reads messages, so it forwards no type that it does not know.
    base_types, known = base.sidecar.abilities.types, adapter.sidecar.abilities.types
    types = tuple(kind for kind in base_types if kind in known)
    # It does not offer an extension of the wrapped adapter.
    overrides = {"types": types, "executor": adapter.sidecar.abilities.executor}
    inherited["abilities"] = base.sidecar.abilities.model_copy(update=overrides)
    inherited["interoperates_with"] = (*base.sidecar.interoperates_with, base.name)
    other_worker = None
    if base.sidecar.worker != adapter.sidecar.worker:
        other_worker = f"it can't wrap {base.name}, which runs in the worker {base.sidecar.worker}"
    return replace(
        adapter,
        sidecar=adapter.sidecar.model_copy(update=inherited),
        missing=other_worker or adapter.missing or base.missing,
        fixed_options={"library": str(base.library), "inner": dict(options.get(base.name, {}))},
        base=base,
    )


def _understanding(adapter: Adapter, name: str) -> Adapter:
    understood = (*adapter.sidecar.interoperates_with, name)
    return replace(adapter, sidecar=adapter.sidecar.model_copy(update={"interoperates_with": understood}))
