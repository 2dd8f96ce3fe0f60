# SPDX-License-Identifier: Apache-2.0
"""A bridge between Zenoh and Cyclone DDS, both in Python, for the topics `out` and `back`.

    toy_sides.py RUNTIME DOMAIN

`out` goes from Zenoh to DDS, `back` the other way: messages of lagometer's type `bytes`, in the same domain
on both sides. RUNTIME is the trial's folder, in which the peers of lagometer's adapters for Zenoh find each
other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import zenoh
from cyclonedds.domain import DomainParticipant
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from toy_bridge import BYTES, QOS, arrivals

runtime, domain = Path(sys.argv[1]), int(sys.argv[2])
peers = runtime / str(domain) / "zenoh"
peers.mkdir(parents=True, exist_ok=True)
listen = f"unixsock-stream/{peers / 'toy.sock'}"
config = zenoh.Config()
for key, value in {
    "mode": '"peer"',
    "listen/endpoints": f'["{listen}"]',
    "scouting/multicast/enabled": "false",
    "scouting/gossip/enabled": "false",
}.items():
    config.insert_json5(key, value)
session: Any = zenoh.open(config)
(peers / "member-toy").write_text(listen)
participant = DomainParticipant(domain)
reader = DataReader(participant, Topic(participant, "lagometer/back", BYTES), QOS)
writer = DataWriter(participant, Topic(participant, "lagometer/out", BYTES), QOS)
publisher = session.declare_publisher(
    f"{domain}/lagometer/back", congestion_control=zenoh.CongestionControl.BLOCK
)
subscriber = session.declare_subscriber(
    f"{domain}/lagometer/out", lambda sample: writer.write(BYTES(data=list(sample.payload.to_bytes())))
)
print("toy serves", flush=True)
for message in arrivals(participant, reader):
    if not isinstance(message, InvalidSample):
        publisher.put(bytes(message.data))
