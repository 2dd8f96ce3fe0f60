# SPDX-License-Identifier: Apache-2.0
"""The transports that an adapter may claim (docs/ADAPTERS.md, "The transport that it claims")."""

from __future__ import annotations

from lagometer.study.values import closest

TRANSPORTS = ("process", "shared-memory", "unix-socket", "tcp", "udp")
WAYS = ("within_process", "between_processes")
# Usual names that don't look like ours.
_MEANT = {"shm": "shared-memory", "uds": "unix-socket", "inproc": "process"}


def wrong_claim(claim: object) -> str | None:
    """Returns what is wrong with `transport` of a description; None if nothing is wrong, or nothing is
    claimed."""
    if claim is None:
        return None
    if not isinstance(claim, dict):
        return f"transport is {claim!r}; it must be an object with {' or '.join(WAYS)}"
    for way, words in claim.items():
        if way not in WAYS:
            near = closest(str(way), WAYS)
            meant = f"; did you mean '{near}'?" if near is not None else ""
            return f"transport has the key {way!r}; known are: {', '.join(WAYS)}{meant}"
        if not isinstance(words, list):
            return f"transport.{way} is {words!r}; it must be a list of words; {known_transports(words)}"
        for word in words:
            if word not in TRANSPORTS:
                return f"transport.{way} has {word!r}, which is not a transport; {known_transports(word)}"
    return None


def known_transports(word: object) -> str:
    """Returns the known words, and the one that was probably meant by an unknown word."""
    known = f"known are: {', '.join(TRANSPORTS)}"
    if word in TRANSPORTS:
        return known
    near = closest(str(word), [*TRANSPORTS, *_MEANT])
    return known if near is None else f"{known}; did you mean '{_MEANT.get(near, near)}'?"


def misplaced_claim(value: object) -> str:
    """Returns a hint for a sidecar with the key `transport`: its value, which may be anything, belongs into
    the code."""
    given = list(value.values()) if isinstance(value, dict) else [value]
    words = [word for each in given for word in (each if isinstance(each, list) else [each])]
    unknown = next((word for word in words if word not in TRANSPORTS), TRANSPORTS[0])
    return f"leave it out: `describe` in the adapter's code claims the transport; {known_transports(unknown)}"
