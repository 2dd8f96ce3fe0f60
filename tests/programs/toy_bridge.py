# SPDX-License-Identifier: Apache-2.0
"""A bridge between two domains for the topics of the workload `across-domains`, over Cyclone DDS in Python.

    toy_bridge.py FIRST SECOND

`out` goes from the first domain to the second, `back` the other way: messages of lagometer's type `bytes`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import sequence, uint8
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

BYTES = final(make_idl_struct("Bytes", "lagometer::Bytes", {"data": sequence[uint8]}))
QOS = Qos(
    Policy.DataRepresentation(use_cdrv0_representation=True),
    Policy.Reliability.Reliable(max_blocking_time=1_000_000_000),
    Policy.History.KeepLast(1000),
)
EVERY = ViewState.Any | InstanceState.Any | SampleState.Any
SECOND_NS = 1_000_000_000


def arrivals(participant: DomainParticipant, reader: DataReader) -> Iterator[object]:
    """What arrives, for ever."""
    waitset = WaitSet(participant)
    waitset.attach(ReadCondition(reader, EVERY))
    while True:
        waitset.wait(SECOND_NS)
        yield from reader.take(N=100)


def carry(name: str, here: DomainParticipant, there: DomainParticipant) -> None:
    """Passes on what arrives, for ever."""
    reader = DataReader(here, Topic(here, name, BYTES), QOS)
    writer = DataWriter(there, Topic(there, name, BYTES), QOS)
    for sample in arrivals(here, reader):
        if not isinstance(sample, InvalidSample):
            writer.write(sample)


if __name__ == "__main__":
    first, second = (DomainParticipant(int(word)) for word in sys.argv[1:3])
    threading.Thread(target=carry, args=("lagometer/back", second, first), daemon=True).start()
    print("toy serves", flush=True)
    carry("lagometer/out", first, second)
