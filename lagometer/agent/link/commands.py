# SPDX-License-Identifier: Apache-2.0
"""How the kernel can make a link with a given profile, as commands of ip, ethtool, tc and nft."""

from __future__ import annotations

import math

from lagometer.agent.link.orders import FRAME_HEADER_BYTES, LOOPBACK, LinkProfile, LinkStep

Command = tuple[str, ...]

TAP = "lagometer0"
TAP_FRAMES = "50000"  # frames that may wait for the program if it is held up
TABLE = "lagometer"
NS_PER_S = 1_000_000_000
BURST_S = 0.001  # a shaper lets this much pass at once
SAVED_FRAMES = 2  # or this many, if that is more
ETHERNET_FRAME_BYTES_MIN = 60  # as a device counts it, without the frame check sequence
# A loopback and a virtual cable pass packets of 64 KB. A link works frame by frame.
OFFLOADS = ("tso", "gso", "gro", "tx-udp-segmentation")
NETEM_RATE_BPS = 100_000_000_000  # no real limit, but it makes netem keep the order (sch_netem.c)
NETEM_FRAMES = 100_000


def device_commands(profile: LinkProfile, device: str) -> list[Command]:
    """What every back-end needs of a device."""
    off = [word for name in OFFLOADS for word in (name, "off")]
    return [
        ("ip", "link", "set", "dev", device, "mtu", str(profile.mtu_bytes)),
        ("ethtool", "-K", device, *off),
    ]


def kernel_commands(profile: LinkProfile, device: str) -> list[Command]:
    """Returns a token bucket where frames leave. Lost frames are dropped where they arrive: they used the
    link, and their sender does not notice, as it would if a frame were dropped on its own way out."""
    commands = []
    if profile.rate_bps:
        commands.append(shaper(profile, device))
    if profile.loss:
        commands += loss_commands(profile.loss, device)
    return commands


def loss_commands(loss: float, device: str) -> list[Command]:
    """Drops frames at random before fragments are reassembled."""
    chain = f"{{ type filter hook ingress device {device} priority 0; }}"
    million = 1_000_000
    odds = ("numgen", "random", "mod", str(million), "<", str(round(loss * million)))
    return [
        ("nft", "add", "table", "netdev", TABLE),
        ("nft", "add", "chain", "netdev", TABLE, "loss", chain),
        ("nft", "add", "rule", "netdev", TABLE, "loss", *odds, "counter", "drop"),
    ]


def shaper(profile: LinkProfile, device: str) -> Command:
    """Returns a token bucket with a queue."""
    burst_bytes = max(math.ceil(profile.rate_bps / 8 * BURST_S), SAVED_FRAMES * profile.frame_bytes)
    size: Command = ()
    if profile.frame_overhead_bytes:
        smallest = ETHERNET_FRAME_BYTES_MIN + profile.frame_overhead_bytes
        overhead = ("overhead", str(profile.frame_overhead_bytes), "mpu", str(smallest))
        size = ("stab", *overhead, "linklayer", "ethernet")
    bucket = ("tbf", "rate", f"{profile.rate_bps}bit", "burst", f"{burst_bytes}b")
    return ("tc", "qdisc", "add", "dev", device, "root", *size, *bucket, "limit", f"{profile.queue_bytes}b")


def redirect_commands(profile: LinkProfile, device: str) -> list[Command]:
    """Sends all frames that leave by the device to the program, at the profile's rate. If the rate changes
    with time, the program enforces it."""
    quiet = [f"net.ipv6.conf.{TAP}.disable_ipv6=1"]
    if device == LOOPBACK:  # addresses of this host now come from outside
        quiet += [f"net.ipv4.conf.{device}.accept_local=1", f"net.ipv4.conf.{device}.route_localnet=1"]
    up = ("arp", "off", "mtu", str(profile.mtu_bytes), "txqueuelen", TAP_FRAMES, "up")
    match_all = ("protocol", "all", "prio", "1", "u32", "match", "u32", "0", "0")
    return [
        *(("sysctl", "-qw", setting) for setting in quiet),
        ("ip", "link", "set", "dev", TAP, *up),
        *([shaper(profile, TAP)] if profile.rate_bps and not profile.timed else []),
        ("tc", "qdisc", "add", "dev", device, "clsact"),
        ("tc", "filter", "add", "dev", device, "egress", *match_all, *_sent_to(TAP)),
    ]


def _sent_to(device: str) -> Command:
    return ("action", "mirred", "egress", "redirect", "dev", device)


def program_arguments(profile: LinkProfile, device: str, seed: int) -> Command:
    """Returns the arguments of `lagometer-link`."""
    values: dict[str, object] = {
        "delay_ns": profile.delay_ns,
        "jitter_ns": profile.jitter_ns,
        "distribution": profile.distribution,
        "loss": profile.loss,
        "burst": profile.burst,
        "reorder": profile.reorder,
        "duplicate": profile.duplicate,
        "seed": seed,
    }
    if profile.timed:
        values |= {
            "rate_bps": profile.rate_bps,
            "overhead_bytes": profile.frame_overhead_bytes,
            "saved_bytes": SAVED_FRAMES * profile.frame_bytes,
            "queue_bytes": profile.queue_bytes,
            **({"trace": profile.trace} if profile.trace else {}),
        }
    words = [f"{key}={value}" for key, value in values.items()]
    return (device, TAP, *words, *(_change(step) for step in profile.steps))


def _change(step: LinkStep) -> str:
    return f"change={step.at_ns},{step.rate_bps},{step.delay_ns},{step.jitter_ns},{step.loss:.9f}"


def netem_commands(profile: LinkProfile, device: str) -> list[Command]:
    """Returns the commands that make the same link with netem, if the kernel has it. Rates make netem keep
    the order of frames; see tc-netem(8)."""
    rate_bps = profile.rate_bps or NETEM_RATE_BPS
    words = ["limit", str(_netem_frames(profile))]
    if profile.delay_ns:
        words += ["delay", f"{profile.delay_ns / 1000:g}us"]
    if profile.jitter_ns:
        # For the uniform distribution netem takes half its width.
        half = profile.jitter_ns * (math.sqrt(3) if profile.distribution == "uniform" else 1)
        words += [f"{half / 1000:g}us"]
        words += ["distribution", "normal"] if profile.distribution == "normal" else []
    if profile.loss and profile.burst > 1:
        leave = 1 / profile.burst
        enter = leave * profile.loss / (1 - profile.loss)
        words += ["loss", "gemodel", _percent(enter), _percent(leave)]
    elif profile.loss:
        words += ["loss", "random", _percent(profile.loss)]
    if profile.duplicate:
        words += ["duplicate", _percent(profile.duplicate)]
    if profile.reorder:
        words += ["reorder", _percent(profile.reorder)]
    words += ["rate", f"{rate_bps}bit", str(profile.frame_overhead_bytes)]
    return [("tc", "qdisc", "add", "dev", device, "root", "netem", *words)]


def netem_can(profile: LinkProfile) -> bool:
    """Whether netem has this distribution. Links that change with time do not use netem."""
    return not profile.timed and profile.distribution in ("normal", "uniform")


def _netem_frames(profile: LinkProfile) -> int:
    """Frames in its queue: those that wait for the rate, and those in transit."""
    if not profile.rate_bps:
        return NETEM_FRAMES
    under_way = profile.rate_bps / 8 * (profile.delay_ns + 4 * profile.jitter_ns) / NS_PER_S
    return math.ceil((profile.queue_bytes + under_way) / (profile.mtu_bytes + FRAME_HEADER_BYTES)) + 1


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
