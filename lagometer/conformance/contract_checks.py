# SPDX-License-Identifier: Apache-2.0
"""Each line of the contract in adapter.h, judged within a process by `lagometer-conformance`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lagometer.conformance import asks
from lagometer.conformance.bench import UNSUPPORTED, Bench, PeerFailure, Refused, Subject
from lagometer.conformance.elf import exported_symbols
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import PubSub
from lagometer.study.payload import PayloadType, has_size, smallest_bytes
from lagometer.study.sidecar import Sidecar

ENTRY = "lagometer_adapter"
HANGS_MAX = 5
LARGEST_BYTES = 65_536  # no line sends a larger one
LOANED = 1  # LAGOMETER_ORIGIN_LOANED


def check_contract(subject: Subject, findings: Findings) -> None:
    """Judges all lines in turn; after a line that hangs or crashes, continues in a new process."""
    library = subject.adapter.library
    symbols = exported_symbols(library)
    allowed = {ENTRY, *subject.adapter.sidecar.takes_place_of}
    named = f"{', '.join(sorted(symbols)[:5])}{' …' if len(symbols) > 5 else ''}"
    findings.judge(
        "library: exports one symbol",
        symbols == allowed,
        f"exports {named}: others may link to them by mistake; export `lagometer_adapter`, and what the "
        "sidecar's `takes_place_of` names, alone",
    )
    judged = _Judged(findings)
    hangs = 0
    while not judged.ended and hangs <= HANGS_MAX:
        hangs += judged.go_on(subject)
    if not judged.ended:
        findings.judge("the lines behind it", False, f"not judged: {hangs} lines have ended their processes")


class _Judged:
    """The progress over all lines and all processes that they needed."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._under_way = ""
        self._next = 0
        self.ended = False

    def go_on(self, subject: Subject) -> bool:
        """Judges from the next line on; returns whether the process hung or crashed."""
        order = {
            "do": "contract",
            "from": self._next,
            "sidecar": json.loads(subject.adapter.sidecar.model_dump_json()),
            "options": subject.all_options(),
            "depth": asks.CONTRACT.depth_within(subject.adapter.sidecar.limits),
            "middleware_inside": middleware_inside(subject.adapter.sidecar),
        }
        try:
            with Bench(subject, 1, LARGEST_BYTES) as bench:
                bench.peers[0].converse({**order, "network": bench.network()}, self._hear)
        except (PeerFailure, Refused) as failure:
            self._findings.judge(self._under_way or "loading", False, str(failure))
            self.ended = not self._under_way
            self._under_way = ""
            return True
        self.ended = True
        return False

    def _hear(self, message: Mapping[str, Any]) -> None:
        if "begin" in message:
            self._under_way, self._next = str(message["begin"]), int(message["number"]) + 1
            return
        self._under_way = ""
        name, detail = str(message["line"]), str(message["detail"])
        if message["passed"] is None:
            self._findings.skip(name, detail)
        else:
            self._findings.judge(name, bool(message["passed"]), detail)


def middleware_inside(sidecar: Sidecar) -> str:
    """What of the middleware is in the adapter's own library: what `compiled_in` says, or all of it if
    `libraries` names that library; else empty. Then nobody can tell whose code in it does something."""
    own = Path(sidecar.library).name
    linked = any(fnmatchcase(own, pattern) for pattern in sidecar.libraries.middleware)
    return sidecar.compiled_in or ("the middleware" if linked else "")


def check_loans(subject: Subject, findings: Findings) -> bool:
    """Whether a publisher exposes the middleware's own memory for one of the types; adds a note for each.

    With options, the adapter may refuse a type for which the middleware lends no memory; raises the last
    `Refused` if it refuses all.
    """
    refused: Refused | None = None
    origins = {0: "none", 1: "loaned", 2: "native", 3: "copied"}
    loaned = served = False
    for kind in subject.adapter.sidecar.abilities.types:
        size = 1024 if has_size(kind, 1024) else smallest_bytes(kind)
        try:
            origin = _origin(subject, kind, size)
        except Refused as error:
            if not subject.options or error.status != UNSUPPORTED:
                raise
            refused = error
            findings.note(f"memory of {kind}", f"refused: {error.reason}")
            continue
        findings.note(f"memory of {kind}", origins.get(origin, "unknown"))
        served = True
        loaned = loaned or origin == LOANED
    if refused is not None and not served:
        raise refused
    return loaned


def _origin(subject: Subject, kind: PayloadType, size: int) -> int:
    """Who owns the memory of a message of this type between borrow and commit, as numbered in adapter.h."""
    with PubSub(subject) as pubsub:
        writer = pubsub.writer(0, "origin", size=size, type=kind)
        pubsub.reader(1, "origin", size=size, type=kind)
        pubsub.meet()
        return int(pubsub.peer(0).do("origin", writer=writer.id, bytes=size)["origin"])
