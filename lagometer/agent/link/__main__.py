# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.agent.link JSON`: makes a link in the network where it is started, measures it,
reports the result, and keeps the link until it is asked to end. Writes one JSON object per line. If it fails,
the last line is the reason."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.agent.emulated import EmulationError, run
from lagometer.agent.link import commands
from lagometer.agent.link.figures import Figure
from lagometer.agent.link.measure import MeasureError, Meeting, Probe
from lagometer.agent.link.orders import DIFFERS, FAILED, READY, START, LinkOrders, parsed
from lagometer.agent.link.words import in_words

_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30


class Emulated:
    """A link while it exists. back_end: what makes it; ran: the commands that made it."""

    def __init__(self, orders: LinkOrders) -> None:
        self._orders = orders
        self._program: subprocess.Popen[bytes] | None = None
        self.back_end = ""
        self.ran: list[commands.Command] = []
        self.opened: Mapping[str, Any] = {}

    def make(self) -> None:
        """Sets the link up with the first suitable back-end. Raises EmulationError."""
        profile, device = self._orders.profile, self._orders.device
        self._run(commands.device_commands(profile, device))
        if profile.simple:
            self.back_end = "kernel"
            self._run(commands.kernel_commands(profile, device))
        elif commands.netem_can(profile) and has_netem(device):
            self.back_end = "netem"
            self._run(commands.netem_commands(profile, device))
        else:
            self.back_end = "user-space"
            self._start_program()
            self._run(commands.redirect_commands(profile, device))

    def end(self) -> dict[str, Any]:
        """Ends the program, and returns what the link did to frames."""
        effects = {"shaper": self._shaper(), "filter_dropped": self._filter_dropped()}
        if self._program is None:
            return effects
        dropped_path = Path("/sys/class/net", commands.TAP, "statistics/tx_dropped")
        with contextlib.suppress(OSError, ValueError):
            effects["program_missed"] = int(dropped_path.read_text())
        self._program.terminate()
        output_lines = self._program.communicate()[0].decode(errors="replace").splitlines()
        return {**effects, "program": json.loads(output_lines[-1]).get("did") if output_lines else None}

    def _run(self, command_lines: Sequence[commands.Command]) -> None:
        for command in command_lines:
            run(*command)
            self.ran.append(command)

    def _start_program(self) -> None:
        orders = self._orders
        words = commands.program_arguments(orders.profile, orders.device, orders.seed)
        try:
            program = subprocess.Popen(
                [orders.program, *words],
                stdout=subprocess.PIPE,
                stdin=subprocess.PIPE if orders.profile.timed else subprocess.DEVNULL,
            )
        except OSError as error:
            raise EmulationError(f"{orders.program} can't be started: {error.strerror}") from error
        self._program = program
        self.ran.append((orders.program, *words))
        assert program.stdout is not None
        answer = json.loads(program.stdout.readline() or b"{}")
        if answer.get("event") != "open":
            raise EmulationError(f"lagometer-link: {answer.get('message', 'it said nothing')}")
        self.opened = {"realtime": answer["realtime"]}
        if program.stdin is not None:  # the agent writes there when the measure phase begins
            self.opened = {**self.opened, START: program.stdin.fileno(), "steps": len(orders.profile.steps)}
            self.opened = {**self.opened, "traced": bool(orders.profile.trace)}

    def _shaper(self) -> Any:
        """What the kernel counted at the shaper or netem; None if there is neither."""
        for device in (commands.TAP, self._orders.device):
            completed = subprocess.run(
                ["tc", "-s", "-j", "qdisc", "show", "dev", device], check=False, capture_output=True
            )
            with contextlib.suppress(ValueError):
                for qdisc in json.loads(completed.stdout or b"[]"):
                    if qdisc.get("kind") in ("tbf", "netem"):
                        return {key: qdisc.get(key) for key in ("kind", "bytes", "packets", "drops")}
        return None

    def _filter_dropped(self) -> int | None:
        completed = subprocess.run(
            ["nft", "-j", "list", "table", "netdev", commands.TABLE], check=False, capture_output=True
        )
        with contextlib.suppress(ValueError):
            for entry in json.loads(completed.stdout or b"{}").get("nftables", ()):
                for expression in entry.get("rule", {}).get("expr", ()):
                    if "counter" in expression:
                        return int(expression["counter"]["packets"])
        return None


def has_netem(device: str) -> bool:
    """Whether this kernel supports netem, found out by trying."""
    attempt = subprocess.run(
        ["tc", "qdisc", "add", "dev", device, "root", "netem"], check=False, capture_output=True
    )
    if attempt.returncode != 0:
        return False
    run("tc", "qdisc", "del", "dev", device, "root")
    return True


def measured(orders: LinkOrders) -> list[Figure]:
    """Measures the link on all hosts at once. Raises MeasureError."""
    with contextlib.ExitStack() as stack:
        try:
            meeting = Meeting(orders)
            stack.callback(meeting.close)
            probe = Probe(orders)
            stack.callback(probe.close)
        except OSError as error:
            raise MeasureError(f"no socket for its packets: {error.strerror}") from error
        meeting.reach(1)
        probe.send()
        for turn, address in enumerate(orders.peers, 2):
            meeting.reach(turn)
            if address == orders.address:
                probe.send_fast()
        meeting.reach(len(orders.peers) + 2)
        figures = probe.measured()
        if wrong := [figure for figure in figures if not figure.as_asked]:
            raise MeasureError("; ".join(in_words(figure) for figure in wrong))
        meeting.reach(len(orders.peers) + 3)
        return figures


def say(message: Mapping[str, Any]) -> None:
    """Writes one line."""
    print(json.dumps(message), flush=True)


def wake_on_time() -> None:
    """Lets the packets that measure the link leave on time: by default a sleep may take 50 µs more, a fifth
    of the time between two of them. Raises EmulationError."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0) != 0:
        raise EmulationError(f"timer slack not set: {os.strerror(ctypes.get_errno())}")
    slack_ns = prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0)
    if slack_ns > 1:
        raise EmulationError(f"timer slack is {slack_ns} ns although 1 ns was set: sleeps end late")


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    orders = parsed(json.loads(arguments[0]))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    link = Emulated(orders)
    try:
        wake_on_time()
        link.make()
        say(
            {
                "back_end": link.back_end,
                "device": orders.device,
                "commands": [" ".join(command) for command in link.ran],
            }
        )
        say({**link.opened, "figures": [figure.as_json() for figure in measured(orders)]})
    except EmulationError as error:
        print(f"{FAILED}: {orders.profile.name} can't be emulated on {orders.device}: {error}", flush=True)
        return 1
    except MeasureError as error:
        print(f"{DIFFERS}: {orders.profile.name} by {link.back_end}: {error}", flush=True)
        return 1
    print(READY, flush=True)
    signal.sigwait({signal.SIGTERM})
    say({"did": link.end()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
