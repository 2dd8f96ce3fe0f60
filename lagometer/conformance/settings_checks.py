# SPDX-License-Identifier: Apache-2.0
"""Options: the adapter rejects unknown ones and accepts known ones; describe() reports what is in force."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from lagometer.conformance import asks
from lagometer.conformance.bench import PeerFailure, Refused, Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import PubSub
from lagometer.store.in_force import confirmation
from lagometer.study.claims import wrong_claim
from lagometer.study.sidecar import Option, OptionValue

UNKNOWN = "no_such_option"
PARTS = ("settings", "paste", "observed", "transport")  # of what describe() returns
TRANSPORT = "transport, as claimed"
Told = dict[str, dict[str, Any]]  # object → its settings


def check_options(subject: Subject, findings: Findings) -> None:
    """An unknown key is rejected, alone and next to known ones; every known one is accepted."""
    defaults = default_options(subject)
    for circumstance, options in (("alone", {}), ("beside known ones", defaults)):
        name = f"an unknown option is refused, {circumstance}"
        try:
            settings_with(subject, {**options, UNKNOWN: 1})
        except Refused as refused:
            findings.judge(name, bool(refused.reason), f"{refused.call} gave no reason to host->fail")
            findings.judge(
                f"{name}, by its name",
                UNKNOWN in refused.reason,
                f"the reason does not name it: {refused.reason}",
            )
        else:
            findings.judge(name, False, f"{{'{UNKNOWN}': 1}} was accepted")
    for key, value in defaults.items():
        try:
            settings_with(subject, {key: value})
        except Refused as refused:
            findings.judge(f"option {key} takes its default", False, f"{value!r}: {refused}")
        else:
            findings.judge(f"option {key} takes its default", True)


def check_settings(subject: Subject, findings: Findings) -> None:
    """A value other than the default shows in what describe() reports.

    Settings that vary by themselves, such as a free port, show nothing. The settings that the sidecar names
    for an option (`reported`) must report its value.
    """
    default_settings = settings_with(subject, {})
    volatile = differing(default_settings, settings_with(subject, {}))
    for key, option in subject.adapter.sidecar.options.items():
        if key == subject.adapter.sidecar.stacks_on:
            continue
        in_force = subject.options.get(key, option.default)
        others = [*other_values(key, option), option.default]
        for value in [candidate for candidate in others if candidate is not None and candidate != in_force]:
            name = f"{key} = {value!r} shows in the effective settings"
            if missing := replace(subject, options={**subject.options, key: value}).missing:
                findings.skip(name, missing)
                continue
            try:
                settings = settings_with(subject, {key: value})
            except Refused as refused:
                findings.judge(f"{name}, or is refused with a reason", bool(refused.reason), str(refused))
                continue
            findings.judge(
                name,
                bool(differing(default_settings, settings) - volatile),
                "describe says the same as without the option: report what is in force under `settings`",
            )
            _check_reported(key, option, value, settings, findings)


def _check_reported(key: str, option: Option, value: OptionValue, settings: Told, findings: Findings) -> None:
    """The settings that report an option have the requested value."""
    if option.reported == ():
        return
    name = f"{key} = {value!r} is what the settings say that tell of it"
    report = confirmation(
        key, value, option.model_dump(mode="json"), lambda setting: told_of(settings, setting)
    )
    if report.in_force is False and _kernel_bounds(report.setting, value):
        findings.skip(name, "the kernel allows no buffer of this size (net.core.rmem_max, wmem_max)")
        return
    detail = (
        f"{report.setting} is {report.value!r}"
        if report.setting
        else f"nothing reports {', '.join(report.silent)}"
    )
    findings.judge(name, bool(report.in_force), detail)


def told_of(by_object: Told, setting: str) -> list[object]:
    """What the context reports for a setting, or else the endpoints."""
    for objects in (("context",), ("writer", "reader")):
        values = [by_object[name][setting] for name in objects if setting in by_object[name]]
        if values:
            return [value.get("value") if isinstance(value, dict) else value for value in values]
    return []


def _kernel_bounds(setting: str, value: OptionValue) -> bool:
    """Whether a setting is a socket buffer, which the kernel limits for unprivileged users."""
    limits = {"SO_RCVBUF": "rmem_max", "receive_buffer_bytes": "rmem_max"}
    limits |= {"SO_SNDBUF": "wmem_max", "send_buffer_bytes": "wmem_max"}
    if setting not in limits or not isinstance(value, int):
        return False
    return value > int(Path("/proc/sys/net/core", limits[setting]).read_text(encoding="ascii"))


def differing(one: Told, other: Told) -> set[tuple[str, str]]:
    """The settings of objects that differ between the two."""
    return {
        (name, key)
        for name in one.keys() | other.keys()
        for key in one.get(name, {}).keys() | other.get(name, {}).keys()
        if one.get(name, {}).get(key) != other.get(name, {}).get(key)
    }


def default_options(subject: Subject) -> dict[str, OptionValue]:
    """All options with their defaults, except the one that names a wrapped adapter: the caller sets it."""
    sidecar = subject.adapter.sidecar
    return {
        key: option.default
        for key, option in sidecar.options.items()
        if option.default is not None and key != sidecar.stacks_on
    }


def other_values(key: str, option: Option) -> list[OptionValue]:
    """Values other than the default: each choice; for a number, one that is likely to be valid."""
    if option.choices:
        return [choice for choice in option.choices if choice not in (option.default, None)]
    if option.type == "boolean":
        return [not option.default]
    if option.type in ("integer", "number"):
        return [_other_number(key, option)]
    return []  # the valid texts are unknown


def _other_number(key: str, option: Option) -> OptionValue:
    minimum = option.minimum if option.minimum is not None else 1
    maximum = option.maximum if option.maximum is not None else 1 << 30
    default = option.default
    if isinstance(default, bool) or not isinstance(default, int | float):
        guess: float = 1 << 20 if "bytes" in key or key.endswith("buffer") else 64
    else:
        guess = default * 2 if default > 0 else minimum + 1
        if guess > maximum:
            guess = default / 2
    bounded = min(max(guess, minimum), maximum)
    return int(bounded) if option.type == "integer" else float(bounded)


def settings_with(subject: Subject, options: dict[str, Any]) -> Told:
    """What describe() reports for a context, a publisher and a subscriber that matched with these options.

    With a value that keeps messages within a process, they don't match. Raises `Refused`, `PeerFailure`.
    """
    known = subject.adapter.sidecar.options
    within_process = any(
        key in known and value in known[key].within_process for key, value in options.items()
    )
    with PubSub(replace(subject, options={**subject.options, **options})) as pubsub:
        qos = pubsub.qos_of(asks.SETTINGS)
        writer, reader = pubsub.writer(0, "settings", qos=qos), pubsub.reader(1, "settings", qos=qos)
        if not within_process:
            pubsub.meet()
        settings = {}
        for role, name, object_id in (
            (0, "context", pubsub.context(0)),
            (0, "writer", writer.id),
            (1, "reader", reader.id),
        ):
            description = _described(pubsub, role, name, object_id)
            settings[name] = {**(description.get("settings") or {}), TRANSPORT: description.get("transport")}
        return settings


def _described(pubsub: PubSub, role: int, name: str, object_id: str) -> dict[str, Any]:
    """A description of the form that lagometer reads, with a transport that it knows. Raises `PeerFailure`
    and not `Refused`: describe() may refuse nothing, so this is not the adapter's answer to an option."""
    try:
        text = pubsub.peer(role).do("describe", id=object_id)["text"]
    except Refused as refused:
        raise PeerFailure(str(refused)) from refused
    try:
        description: object = json.loads(text)
    except ValueError:
        description = text
    if (wrong := wrong_description(description)) is not None:
        raise PeerFailure(f"describe of a {name}: {wrong}")
    assert isinstance(description, dict), "else it is wrong"
    return description


def wrong_description(description: object) -> str | None:
    """What is wrong with what describe() returns (docs/ADAPTERS.md, "What it reports about itself"); None if
    nothing is."""
    if not isinstance(description, dict):
        return f"it returned {description!r}; it must be a JSON object with {', '.join(PARTS)}"
    for key, value in description.items():
        if key not in PARTS:
            return f"it has the unknown key '{key}', which nobody would read; known are {', '.join(PARTS)}"
        wanted: type = list if key == "paste" else dict
        if key != "transport" and value is not None and not isinstance(value, wanted):
            return f"{key} is {value!r}; it must be {'a list' if wanted is list else 'an object'}"
    for key, setting in (description.get("settings") or {}).items():
        if not isinstance(setting, dict) or not {"value", "default"} <= setting.keys():
            return f'the setting \'{key}\' is {setting!r}; it must be {{"value": …, "default": …}}'
    return wrong_claim(description.get("transport"))
