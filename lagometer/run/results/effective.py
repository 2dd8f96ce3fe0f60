# SPDX-License-Identifier: Apache-2.0
"""What adapters' objects report about themselves (`describe`), in the manifest's form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from lagometer.agent.daemons import Done as DaemonDone
from lagometer.run.worker.outcome import TrialOutcome

Entry = dict[str, Any]


def described(outcome: TrialOutcome) -> list[Entry]:
    """Returns the settings in one trial. Objects that differ only in observed values share one entry.

    An entry: adapter, object, settings, observed {name: values}, paste. Empty if no worker became ready.
    """
    flat_entries = [
        _flat(setting) for worker in outcome.workers if worker.ready for setting in worker.ready.settings
    ]
    flat_entries += [_of_daemon(daemon) for daemon in outcome.daemons if flat_entries]
    entries: dict[str, Entry] = {}
    for entry in flat_entries:
        existing = entries.setdefault(_without(entry), entry)
        if existing is not entry:
            _add_observed(existing, entry)
    return list(entries.values())


def add_observed(entries: Iterable[Entry], later_entries: Iterable[Entry]) -> None:
    """Adds the observations of a later trial of the same cell to `entries`. The first trial's settings
    stay."""
    by_name: dict[tuple[object, object], Entry] = {}
    by_settings: dict[str, Entry] = {}
    for entry in entries:
        by_name.setdefault(_name(entry), entry)
        by_settings.setdefault(_without(entry), entry)
    for later in later_entries:
        counterpart = by_settings.get(_without(later)) or by_name.get(_name(later))
        if counterpart is not None:
            _add_observed(counterpart, later)


def _name(entry: Entry) -> tuple[object, object]:
    return entry["adapter"], entry["object"]


def _without(entry: Entry) -> str:
    """The parts in which two entries must agree: all but the observed values."""
    return json.dumps({name: entry[name] for name in entry if name != "observed"}, sort_keys=True)


def _add_observed(entry: Entry, other: Entry) -> None:
    """Each name's values once, in sorted order, because the order of workers has no meaning."""
    observed: dict[str, list[Any]] = {
        name: list(values) for name, values in entry.get("observed", {}).items()
    }
    for name, values in other["observed"].items():
        known_values = observed.setdefault(name, [])
        known_values += [value for value in values if value not in known_values]
        known_values.sort(
            key=lambda value: (isinstance(value, str), value if _is_number(value) else 0, json.dumps(value))
        )
    entry["observed"] = observed


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _flat(description: Mapping[str, Any]) -> Entry:
    """Returns what one object reported, without null observations."""
    effective = description.get("effective")
    effective = effective if isinstance(effective, dict) else {}
    observed = effective.get("observed")
    return {
        "adapter": description.get("adapter"),
        "object": description.get("object"),
        "settings": effective.get("settings", description.get("settings", {})),
        "observed": {
            str(name): [value]
            for name, value in (observed if isinstance(observed, dict) else {}).items()
            if value is not None
        },
        "paste": effective.get("paste", description.get("paste", [])),
    }


def _of_daemon(daemon: DaemonDone) -> Entry:
    """Returns how a daemon was started, in the same form."""
    paste = [{"file": name, "text": text} for name, text in daemon.files.items()]
    paste.append({"file": "command", "text": shlex.join(daemon.command)})
    return {"adapter": daemon.name, "object": "daemon", "settings": {}, "observed": {}, "paste": paste}
