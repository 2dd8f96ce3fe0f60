# SPDX-License-Identifier: Apache-2.0
"""What objects of adapters say of themselves (`describe`), as the manifest has it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from lagometer.agent.daemons import Done as DaemonDone
from lagometer.run.worker.outcome import TrialOutcome

Entry = dict[str, Any]


def described(outcome: TrialOutcome) -> list[Entry]:
    """Returns what held in one trial, objects that agree but for what was observed in one entry.

    An entry: adapter, object, settings, observed {name: values}, paste. Empty if no worker became ready.
    """
    said = [_flat(each) for worker in outcome.workers if worker.ready for each in worker.ready.settings]
    said += [_of_daemon(each) for each in outcome.daemons if said]
    entries: dict[str, Entry] = {}
    for each in said:
        same = entries.setdefault(_without(each), each)
        if same is not each:
            _add_observed(same, each)
    return list(entries.values())


def add_observed(kept: Iterable[Entry], of_trial: Iterable[Entry]) -> None:
    """Adds what a later trial of the same cell observed to `kept`; the settings stay the first trial's."""
    named: dict[tuple[object, object], Entry] = {}
    same: dict[str, Entry] = {}
    for entry in kept:
        named.setdefault(_name(entry), entry)
        same.setdefault(_without(entry), entry)
    for each in of_trial:
        entry_of = same.get(_without(each)) or named.get(_name(each))
        if entry_of is not None:
            _add_observed(entry_of, each)


def _name(entry: Entry) -> tuple[object, object]:
    return entry["adapter"], entry["object"]


def _without(entry: Entry) -> str:
    """What two entries agree in, but for what was observed."""
    return json.dumps({name: entry[name] for name in entry if name != "observed"}, sort_keys=True)


def _add_observed(entry: Entry, other: Entry) -> None:
    """Each name's values once, in an order of their own, since that of the workers is nobody's."""
    observed: dict[str, list[Any]] = {
        name: list(values) for name, values in entry.get("observed", {}).items()
    }
    for name, values in other["observed"].items():
        held = observed.setdefault(name, [])
        held += [value for value in values if value not in held]
        held.sort(
            key=lambda value: (isinstance(value, str), value if _is_number(value) else 0, json.dumps(value))
        )
    entry["observed"] = observed


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _flat(said: Mapping[str, Any]) -> Entry:
    """Returns what one object said; a null observation is left out."""
    effective = said.get("effective")
    effective = effective if isinstance(effective, dict) else {}
    observed = effective.get("observed")
    return {
        "adapter": said.get("adapter"),
        "object": said.get("object"),
        "settings": effective.get("settings", said.get("settings", {})),
        "observed": {
            str(name): [value]
            for name, value in (observed if isinstance(observed, dict) else {}).items()
            if value is not None
        },
        "paste": effective.get("paste", said.get("paste", [])),
    }


def _of_daemon(daemon: DaemonDone) -> Entry:
    """Returns what a daemon was started with, in the same form."""
    paste = [{"file": name, "text": text} for name, text in daemon.files.items()]
    paste.append({"file": "command", "text": shlex.join(daemon.command)})
    return {"adapter": daemon.name, "object": "daemon", "settings": {}, "observed": {}, "paste": paste}
