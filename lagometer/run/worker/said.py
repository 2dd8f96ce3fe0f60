# SPDX-License-Identifier: Apache-2.0
"""Why a trial fails because of what a worker said, or wrote before it died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lagometer.run.worker.conversation import Conversation, failure_code
from lagometer.run.worker.messages import Failed, Ready
from lagometer.run.worker.panics import panic_in
from lagometer.run.worker.plan import Plan
from lagometer.run.worker.unmatched import counted
from lagometer.run.worker.words import text_of
from lagometer.study.claims import wrong_claim

MISSING_NAMED_MAX = 8  # as many readers as a person looks at


def reasons_of(
    event: str, talk: Conversation, conversations: Sequence[Conversation], plans: Sequence[Plan]
) -> Iterator[str]:
    """Returns why the trial fails now that this event came; for most events there is no reason."""
    if event == "ready" and talk.ready is not None:
        yield from _wrong_claims(talk.name, talk.ready)
    if event == "failed" and talk.failed is not None:
        yield _failure(talk.name, talk.failed, conversations, plans)


def died(talk: Conversation, how: str, phase: str) -> str:
    """Returns why the trial fails because this worker ended; with its panic, if it wrote of one."""
    panic = panic_in(talk.stderr)
    return f"worker-died: {talk.name} {how} in phase {phase}{panic and f': {panic}'}"


def _wrong_claims(name: str, ready: Ready) -> Iterator[str]:
    """The first wrong claim of a transport: the objects of an adapter usually make the same."""
    for setting in ready.settings:
        effective = setting.get("effective")
        wrong = wrong_claim(effective.get("transport")) if isinstance(effective, dict) else None
        if wrong is not None:
            where = f"{setting.get('adapter')}: describe of {setting.get('object')}"
            yield f"adapter-failed: {name} in phase create: {where}: {wrong}"
            return


def _failure(name: str, failed: Failed, conversations: Sequence[Conversation], plans: Sequence[Plan]) -> str:
    counts = counted(failed, plans)
    code = failure_code(failed, conversations)
    return f"{code}: {name} in phase {failed.phase}: {_told(failed)}{counts and f'; {counts}'}"


def _told(failed: Failed) -> str:
    """The worker's message with what is missing. It names each reader, of which there may be hundreds: then
    the first ones, and how many more."""
    if not failed.missing:
        return failed.message
    if (more := len(failed.missing) - MISSING_NAMED_MAX) > 0:
        return f"{';'.join(failed.message.split(';')[:MISSING_NAMED_MAX])}; and {more} more"
    return f"{failed.message} (missing: {', '.join(map(text_of, failed.missing))})"
