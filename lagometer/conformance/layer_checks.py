# SPDX-License-Identifier: Apache-2.0
"""Whether the stamps of the middleware's layers match their messages, by the middleware's own key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lagometer.conformance import asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.exchange_checks import PACE_NS
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import Endpoint, PubSub
from lagometer.stats.trial.layers import LAYER_END, VENDOR_FROM, layer_name, match, with_keys

MESSAGES = asks.LAYERS.messages
TRACE_SCHEMA = {
    "stream": pl.Int64(),
    "sequence": pl.UInt64(),
    "writer_id": pl.UInt64(),
    "middleware_sequence": pl.UInt64(),
    "source_time_ns": pl.Int64(),
}


def check_layers(subject: Subject, findings: Findings) -> None:
    """Two publishers with the same numbers, each in a process with a subscriber that receives both."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.LAYERS)  # as deep as the message count: a busy machine overwrites none
        writers = [pubsub.writer(role, "layers", qos=qos, stamps=True) for role in (0, 1)]
        readers = [pubsub.reader(role, "layers", qos=qos, stamps=True) for role in (0, 1)]
        pubsub.meet()
        pairs = [(reader, writer) for reader in readers for writer in writers]
        sent: list[list[dict[str, Any]]] = [[], []]
        for _ in range(4):  # in turns, so that both are in flight together
            for index, writer in enumerate(writers):
                sent[index] += pubsub.send(writer, MESSAGES // 4, pace_ns=PACE_NS // 4).traces
        accounts = pubsub.settled(pairs, MESSAGES)
        received = [account.traces for account in accounts]
    trouble = [account.trouble for account in accounts if account.trouble]
    findings.judge("all that came is whole", not trouble, trouble[0] if trouble else "")
    layers = subject.adapter.sidecar.abilities.layers
    assert layers is not None, "else the check is not carried out"
    rows = _rows([writer for _, writer in pairs], received, pairs)
    if layers.key is None:
        _judge_keyless(findings, _rows(writers, sent), rows)
    else:
        _judge_join(findings, _rows(writers, sent), rows)
    _judge_stamps(findings, "sender", layers.sender, [trace for traces in sent for trace in traces])
    _judge_stamps(findings, "receiver", layers.receiver, [trace for traces in received for trace in traces])


def _rows(
    streams: Sequence[Endpoint],
    traces: Sequence[Sequence[Mapping[str, Any]]],
    pairs: Sequence[tuple[Endpoint, Endpoint]] = (),
) -> pl.DataFrame:
    """One row per message; `lane` is the index of the subscriber among the pairs' subscribers."""
    readers = list(dict.fromkeys(reader.id for reader, _ in pairs))
    rows = [
        {
            "stream": endpoint.stream,
            **{name: trace[name] for name in TRACE_SCHEMA if name != "stream"},
            "lane": readers.index(pairs[index][0].id) if pairs else 0,
        }
        for index, (endpoint, stream_traces) in enumerate(zip(streams, traces, strict=True))
        for trace in stream_traces
    ]
    return pl.DataFrame(rows, schema={**TRACE_SCHEMA, "lane": pl.Int64()})


def _judge_keyless(findings: Findings, sent: pl.DataFrame, received: pl.DataFrame) -> None:
    keyed = [with_keys(side).filter(pl.col("by") != 0).height for side in (sent, received)]
    findings.judge("messages came", received.height > 0, "no message came")
    findings.judge(
        "no message has a key, as the sidecar says",
        not any(keyed),
        f"{keyed[0]} sent and {keyed[1]} received messages have one: name it in the sidecar's `layers`",
    )


def _judge_join(findings: Findings, sent: pl.DataFrame, received: pl.DataFrame) -> None:
    matches = match(sent, received)
    joined, strange = (matches.count(fate) for fate in ("joined", "strange"))
    unknown = matches.count("unknown") + matches.count("keyless")
    findings.judge("messages came", received.height > 0, "no message came")
    findings.judge(
        f"{received.height} messages came, and the sender's stamps of each are found by its key",
        unknown == 0,
        f"the stamps of {joined} were found, those of {unknown} were not",
    )
    findings.judge(
        "no stamps are another message's",
        strange == 0,
        f"{strange} of {received.height} messages bear the key of another",
    )
    findings.judge(
        "no two messages have one key",
        matches.ambiguous == 0,
        f"{matches.ambiguous} keys belong to more than one message",
    )


def _judge_stamps(
    findings: Findings, side: str, declared: Sequence[str], traces: Sequence[Mapping[str, Any]]
) -> None:
    """Every layer in the sidecar is stamped, no other is, each is entered before it is left, in order."""
    stamped: set[str] = set()
    fault = ""
    for trace in traces:
        times = [time_ns for _, time_ns, _ in trace["stamps"]]
        if times != sorted(times) or any(time_ns <= 0 for time_ns in times):
            fault = fault or f"sequence {trace['sequence']}: {trace['stamps']}"
        entered: set[int] = set()
        for layer, _, _ in trace["stamps"]:
            number = layer & ~LAYER_END
            if layer & LAYER_END and number not in entered:
                fault = fault or f"sequence {trace['sequence']} left {layer_name(number)} without entering it"
            entered.add(number)
        stamped |= {layer_name(number) for number in entered if number < VENDOR_FROM}
    missing = sorted(set(declared) - stamped)
    undeclared = sorted(stamped - set(declared))
    findings.judge(
        f"{side}: every layer that is declared is stamped",
        not missing,
        f"no message has a stamp of {', '.join(missing)}, which the sidecar's `layers` list",
    )
    findings.judge(
        f"{side}: no layer that is not declared",
        not undeclared,
        f"messages have stamps of {', '.join(undeclared)}, which the sidecar's `layers` do not list",
    )
    findings.judge(f"{side}: stamps in order, a layer entered before it is left", not fault, fault)
