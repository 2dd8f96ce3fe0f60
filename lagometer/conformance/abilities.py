# SPDX-License-Identifier: Apache-2.0
"""The abilities, in matrix order: what each means, when a sidecar declares it absent, and its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lagometer.conformance import asks
from lagometer.conformance.asks import Asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.contract_checks import check_contract, check_loans
from lagometer.conformance.exchange_checks import (
    DATAGRAM_BYTES,
    check_best_effort,
    check_discovery,
    check_dispatch,
    check_large,
    check_reliable,
    check_sizes,
)
from lagometer.conformance.findings import Findings, Otherwise
from lagometer.conformance.history_checks import check_keep_all, check_keep_last, check_transient_local
from lagometer.conformance.layer_checks import check_layers
from lagometer.conformance.life_checks import check_reopening, check_teardown
from lagometer.conformance.scale_checks import (
    FAN_LEAST,
    check_domains,
    check_endpoints,
    check_fan_out,
    check_topics,
)
from lagometer.conformance.security_checks import check_security
from lagometer.conformance.settings_checks import check_options, check_settings
from lagometer.conformance.worker_checks import check_output, check_services
from lagometer.study.sidecar import Sidecar


@dataclass(frozen=True)
class Ability:
    """One column of the matrix.

    asks: the most that the check needs; lacks: why the sidecar declares it absent, None if it doesn't;
    check: adds lines, and says what the verdict is if no line is broken and it is not a pass;
    not_from_python: why it can't be checked for a Python adapter, empty if it can.
    """

    name: str
    title: str
    asks: Asks
    check: Callable[[Subject, Findings], Otherwise | None]
    lacks: Callable[[Sidecar], str | None] = lambda _: None
    not_from_python: str = ""


def _unlisted(ability: str, value: str) -> Callable[[Sidecar], str | None]:
    def lacks(sidecar: Sidecar) -> str | None:
        listed = getattr(sidecar.abilities, ability)
        return None if value in listed else f"{ability} lists {', '.join(listed)}"

    return lacks


def _beyond_limits(
    wanted: Asks, topics_least: int | None = None, endpoints_least: int | None = None
) -> Callable[[Sidecar], str | None]:
    return lambda sidecar: wanted.lacks(sidecar.limits, topics_least, endpoints_least)


def _domains(sidecar: Sidecar) -> str | None:
    return None if sidecar.abilities.domains else "domains is false"


def _services(sidecar: Sidecar) -> str | None:
    return None if sidecar.abilities.services else "services is false"


def _security(sidecar: Sidecar) -> str | None:
    return None if sidecar.abilities.security else "security lists nothing"


def _large(sidecar: Sidecar) -> str | None:
    limit = sidecar.limits.payload_bytes_max
    if limit is None or limit > DATAGRAM_BYTES:
        return None
    return f"at most {limit:,} B: {sidecar.limits.payload_bytes_max_reason}"


def _layers(sidecar: Sidecar) -> str | None:
    return None if sidecar.abilities.layers is not None else "layers is null"


def _loans(subject: Subject, findings: Findings) -> Otherwise | None:
    if check_loans(subject, findings):
        return None
    if subject.adapter.sidecar.abilities.origin == "loaned":
        findings.judge(
            "loaned, as the sidecar declares",
            False,
            "borrow returned LOANED for no type: lend the middleware's memory, or declare another `origin`",
        )
    return Otherwise("absent", "declared absent: the sidecar's origin is not loaned")


ABILITIES: tuple[Ability, ...] = (
    Ability("discovery", "endpoints find each other, whichever comes first", asks.DISCOVERY, check_discovery),
    *(
        Ability(
            dispatch,
            f"messages arrive with dispatch {dispatch}",
            asks.DISPATCH,
            partial(check_dispatch, dispatch=dispatch),
            _unlisted("dispatch", dispatch),
        )
        for dispatch in ("listener", "waitset", "poll")
    ),
    Ability("sizes", "16 B to 65,507 B, byte for byte", asks.SIZES, check_sizes),
    Ability("large", "above 65,507 B, up to 16 MiB, byte for byte", asks.SIZES, check_large, _large),
    Ability("loans", "the middleware's own memory is written to", asks.LOANS, _loans),
    Ability(
        "best-effort",
        "best-effort delivery",
        asks.BEST_EFFORT,
        check_best_effort,
        _unlisted("reliability", "best_effort"),
    ),
    Ability(
        "reliable",
        "reliable delivery to a slow subscriber",
        asks.RELIABLE,
        check_reliable,
        _unlisted("reliability", "reliable"),
    ),
    Ability(
        "keep-last",
        "the newest messages are kept",
        asks.KEEP_LAST,
        check_keep_last,
        _unlisted("history", "keep_last"),
    ),
    Ability(
        "keep-all",
        "all are kept, or back-pressure is reported",
        asks.KEEP_ALL,
        check_keep_all,
        _unlisted("history", "keep_all"),
    ),
    Ability(
        "transient-local",
        "a late subscriber gets earlier messages",
        asks.TRANSIENT_LOCAL,
        check_transient_local,
        _unlisted("durability", "transient_local"),
    ),
    Ability("domains", "two domains don't hear each other", asks.DOMAINS, check_domains, _domains),
    Ability("500-topics", "500 topics at once", asks.TOPICS, check_topics, _beyond_limits(asks.TOPICS)),
    Ability(
        "50-endpoints",
        "50 endpoints on a topic",
        asks.ENDPOINTS,
        check_endpoints,
        _beyond_limits(asks.ENDPOINTS),
    ),
    Ability(
        "fan-out",
        "eight subscribers get their share",
        asks.FAN_OUT,
        check_fan_out,
        _beyond_limits(asks.FAN_OUT, endpoints_least=1 + FAN_LEAST),
    ),
    Ability("reopening", "100 openings leave nothing behind", asks.REOPENING, check_reopening),
    Ability(
        "teardown",
        "endpoints come and go while messages flow",
        asks.TEARDOWN,
        check_teardown,
        _beyond_limits(asks.TEARDOWN),
        not_from_python="an adapter in Python releases its endpoints only with their context",
    ),
    Ability("options", "unknown options are refused, known ones taken", asks.SETTINGS, check_options),
    Ability("settings", "effective settings show the values in force", asks.SETTINGS, check_settings),
    Ability(
        "contract",
        "every line of the contract in adapter.h",
        asks.CONTRACT,
        check_contract,
        not_from_python="an adapter in Python is not a shared library and does not use the C ABI",
    ),
    Ability(
        "layers",
        "stamps of layers find their messages on both sides",
        asks.LAYERS,
        check_layers,
        _layers,
    ),
    Ability("services", "request and reply of its own", asks.OUTPUT, check_services, _services),
    Ability(
        "security",
        "certificates decide who hears whom, signed and encrypted",
        asks.SECURITY,
        check_security,
        _security,
    ),
    Ability("output", "real workers, whatever is printed on standard output", asks.OUTPUT, check_output),
)
NAMES = frozenset(ability.name for ability in ABILITIES)
