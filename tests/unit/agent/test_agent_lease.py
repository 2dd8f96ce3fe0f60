# SPDX-License-Identifier: Apache-2.0
"""An agent's lease: renewals that it has not read yet count, and without any it ends with a word."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lagometer.agent import serving
from lagometer.agent.frames import Frame, Frames, framed


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """What the agent reads, what the conductor writes, what the conductor reads, what the agent writes."""
    to_agent, from_conductor = os.pipe()
    to_conductor, from_agent = os.pipe()
    yield to_agent, from_conductor, to_conductor, from_agent
    for descriptor in (to_agent, from_conductor, to_conductor, from_agent):
        os.close(descriptor)


def test_an_agent_that_comes_late_reads_its_renewals_first(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lease is over before the agent looks, as on a host that gave it no CPU: the renewal was there."""
    to_agent, from_conductor, to_conductor, from_agent = pipes
    monkeypatch.setattr(serving, "LEASE_S", 0.2)
    agent = serving.Agent(Path("none"), to_agent, from_agent)
    os.write(from_conductor, framed({"command": "lease"}))
    monkeypatch.setattr(agent, "_lease_ns", 0)
    agent.run()
    assert "it heard nothing from its conductor for 0.2 s" in capfd.readouterr().err
    frames = Frames().feed(os.read(to_conductor, 1 << 20))
    assert [message["event"] for message, _ in frames] == ["agent"]
    assert agent._lease_ns > 0, "the renewal was read, and the lease ran out once more"


def test_one_whose_conductor_is_slow_to_read_hears_that_it_lives(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    to_agent, from_conductor, to_conductor, from_agent = pipes
    agent = serving.Agent(Path("none"), to_agent, from_agent)
    os.set_blocking(from_agent, False)
    monkeypatch.setattr(agent, "_lease_ns", 0)
    os.write(from_conductor, framed({"command": "lease"}))
    sent = threading.Thread(target=agent._send, args=({"event": "evidence"}, b"x" * (1 << 20)))
    sent.start()
    frames = Frames()
    found: list[Frame] = []
    while not found:
        found = frames.feed(os.read(to_conductor, 1 << 16))
    sent.join()
    assert found[0][0]["event"] == "evidence" and len(found[0][1] or b"") == 1 << 20
