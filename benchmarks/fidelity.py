# SPDX-License-Identifier: Apache-2.0
"""Does our engine add to what it measures? Ping-pong over Cyclone DDS against the vendor's own ddsperf.

Both sides: topic of a sequence of octets, reliable, keep-last 1, listeners, two fresh processes in fresh
private namespaces, SCHED_FIFO, one CPU each, the vendor's default configuration, the same bytes on the wire
(counted at the loopback). ddsperf runs twice in every block: the ratio of its two runs shows what this
machine does to equal things. ddsperf prints half the round trip, so ours is halved. `--smoke` is short and
only checks that it works.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from results import Ratio, geometric_mean, ratio_of_pairs, write_result
from sides import Sides

KIB = 1024
SIZES = [64 << doubling for doubling in range(11)] + [256 * KIB, KIB * KIB]
SMOKE_SIZES = [64, 64 * KIB]
BLOCKS = 20
SMOKE_BLOCKS = 2
OURS, VENDOR, VENDOR_AGAIN = "ours", "ddsperf", "ddsperf again"
GEOMETRIC_MEAN_MAX = 1.00
SLOWER_FROM = 1.02  # a size fails if its whole interval is above this
WIRE_TOLERANCE = 0.03  # the count includes discovery and heartbeats, which are not round trips


@dataclass
class Size:
    """All blocks of one payload size: half round trips in ns, and bytes on the loopback per round trip."""

    payload_bytes: int
    halves_ns: dict[str, list[float]] = field(default_factory=dict)
    wire_bytes: dict[str, float] = field(default_factory=dict)

    def add(self, side: str, half_ns: float) -> None:
        """Adds one block's median."""
        self.halves_ns.setdefault(side, []).append(half_ns)

    def ratio(self) -> Ratio:
        """Ours over the vendor's: the pair of each block, with the vendor's two runs averaged."""
        vendor = [geometric_mean(pair) for pair in zip(*self._vendors(), strict=True)]
        return ratio_of_pairs(self.halves_ns[OURS], vendor)

    def control(self) -> Ratio:
        """The vendor's second run over its first."""
        again, first = self.halves_ns[VENDOR_AGAIN], self.halves_ns[VENDOR]
        return ratio_of_pairs(again, first)

    def wire_ratio(self) -> float:
        """Bytes per round trip, ours over the vendor's."""
        return self.wire_bytes[OURS] / self.wire_bytes[VENDOR]

    def _vendors(self) -> tuple[list[float], list[float]]:
        return self.halves_ns[VENDOR], self.halves_ns[VENDOR_AGAIN]


def measure(sides: Sides, sizes: Sequence[int], blocks: int, seed: int) -> list[Size]:
    """Runs all blocks: sizes and sides in random order within each, one after the other."""
    generator = random.Random(seed)
    results = {size: Size(size) for size in sizes}
    for size in sizes:
        results[size].wire_bytes = {OURS: sides.our_wire_bytes(size), VENDOR: sides.vendor_wire_bytes(size)}
    for block in range(blocks):
        for size in generator.sample(list(sizes), len(sizes)):
            for side in generator.sample([OURS, VENDOR, VENDOR_AGAIN], 3):
                half_ns = sides.our_half_ns(size) if side == OURS else sides.vendor_half_ns(size)
                results[size].add(side, half_ns)
        print(f"block {block + 1} of {blocks}", file=sys.stderr, flush=True)
    return list(results.values())


def row_of(size: Size) -> dict[str, Any]:
    """One line of the table and of the JSON, including every block."""
    ratio, control = size.ratio(), size.control()
    return {
        "payload_bytes": size.payload_bytes,
        "ours_us": float(np.median(size.halves_ns[OURS])) / 1000,
        "ddsperf_us": float(np.median(size.halves_ns[VENDOR] + size.halves_ns[VENDOR_AGAIN])) / 1000,
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "control": control.value,
        "control_low": control.low,
        "control_high": control.high,
        "wire_ratio": size.wire_ratio(),
        "slower": ratio.low > SLOWER_FROM,
        "same_wire": abs(size.wire_ratio() - 1) <= WIRE_TOLERANCE,
        "blocks_ns": size.halves_ns,
    }


def print_table(rows: Sequence[dict[str, Any]], mean: float) -> None:
    """Prints the table for people; half round trips in µs, medians of the blocks' medians."""
    titles = f"{'payload':>9} {'ours':>9} {'ddsperf':>9}"
    print(f"{titles} {'ours/ddsperf (95 %)':>24} {'ddsperf/itself':>22} {'wire':>6}")
    for row in rows:
        ours = f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"
        control = f"{row['control']:.3f} [{row['control_low']:.3f}, {row['control_high']:.3f}]"
        marks = ("  slower" if row["slower"] else "") + (
            "" if row["same_wire"] else "  other bytes on the wire"
        )
        print(
            f"{row['payload_bytes']:>9} {row['ours_us']:>9.2f} {row['ddsperf_us']:>9.2f}"
            f" {ours:>24} {control:>22} {row['wire_ratio']:>6.3f}{marks}"
        )
    print(f"geometric mean of the ratios: {mean:.4f} (pass: at most {GEOMETRIC_MEAN_MAX:.2f})")


def main() -> int:
    """Measures, prints, writes out/bench/fidelity.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="two sizes, two blocks; passes if it works")
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--sizes", help="payload bytes, comma-separated; the default is 64 B to 1 MB")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("ddsperf") is None:
        print("skipped: ddsperf is not installed (Debian: cyclonedds-tools)", file=sys.stderr)
        return 0 if arguments.smoke else 1
    sizes = [int(size) for size in re.findall(r"\d+", arguments.sizes or "")]
    sizes = sizes or (SMOKE_SIZES if arguments.smoke else SIZES)
    blocks = SMOKE_BLOCKS if arguments.smoke else arguments.blocks
    with Sides(smoke=arguments.smoke) as sides:
        results = measure(sides, sizes, blocks, arguments.seed)
    rows = [row_of(size) for size in results]
    mean = geometric_mean([row["ratio"] for row in rows])
    print_table(rows, mean)
    same_wire = all(row["same_wire"] for row in rows)
    fast = mean <= GEOMETRIC_MEAN_MAX and not any(row["slower"] for row in rows)
    passed = same_wire and (fast or arguments.smoke)
    path = write_result(
        "fidelity",
        passed,
        rows,
        geometric_mean=mean,
        blocks=blocks,
        seed=arguments.seed,
        smoke=arguments.smoke,
    )
    print(f"{'pass' if passed else 'NOT REACHED'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
