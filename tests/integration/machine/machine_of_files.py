# SPDX-License-Identifier: Apache-2.0
"""A machine made of files, which lie over what tuning sets for whoever enters; the real one stays as is."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from campaign_support import WAIT_S

from lagometer.machine.holder import Holder, end_holder
from lagometer.machine.tuning import STATE

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18
DMA_LATENCY = Path("/dev/cpu_dma_latency")
BEFORE = {
    "core/rmem_max": "212992",
    "core/wmem_max": str(1 << 30),  # more than is wanted
    "core/netdev_max_backlog": "1000",
    "ipfrag_high_thresh": "5000000",
    "irq/24/smp_affinity_list": "0-3",
    "irq/9/smp_affinity_list": "0",
}
TUNED = {
    **BEFORE,
    "core/rmem_max": str(64 << 20),
    "core/netdev_max_backlog": "10000",
    "ipfrag_high_thresh": str(128 << 20),
    "irq/24/smp_affinity_list": "0",
}
CHANGED = sum(BEFORE[name] != TUNED[name] for name in BEFORE)


class MachineOfFiles:
    """Its files lie below a folder. A child enters before its program runs: `enter`, `enter_unchangeable`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in BEFORE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")
        for name in ("run", "no-frequencies"):
            (folder / name).mkdir()
        (folder / "cpu_dma_latency").touch()
        self.state = folder / "run" / "lagometer" / STATE

    def content(self) -> dict[str, str]:
        """What its settings are now."""
        return {name: (self._folder / name).read_text().strip() for name in BEFORE}

    def enter(self) -> None:
        """Puts the files in their places, in a mount namespace of this process's own."""
        self._enter(unchangeable=False)

    def enter_unchangeable(self) -> None:
        """Likewise, but no setting can be written."""
        self._enter(unchangeable=True)

    def tune_host(self, *arguments: str) -> tuple[int, str, str]:
        """Runs `lagometer tune-host` on it: exit code, standard output, standard error."""
        command = [sys.executable, "-m", "lagometer.cli.main", "tune-host", *arguments]
        result = subprocess.run(
            command, preexec_fn=self.enter, capture_output=True, encoding="utf-8", timeout=WAIT_S
        )
        return result.returncode, result.stdout, result.stderr

    def holder(self) -> Holder | None:
        """The process that holds the tuning which is written down."""
        if not self.state.exists():
            return None
        written: dict[str, Any] = json.loads(self.state.read_text())
        return Holder.of_json(written["holder"]) if written["holder"] is not None else None

    def close(self) -> None:
        """Ends what a failed test has left."""
        if (holder := self.holder()) is not None:
            end_holder(holder)

    def _enter(self, *, unchangeable: bool) -> None:
        library = ctypes.CDLL(None, use_errno=True)

        def mount(source: Path | None, target: Path, flags: int) -> None:
            from_where = None if source is None else os.fsencode(source)
            if library.mount(from_where, os.fsencode(target), None, flags, None) != 0:
                raise OSError(ctypes.get_errno(), f"mount {source} on {target}")

        if library.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        mount(None, Path("/"), MS_REC | MS_PRIVATE)
        mount(self._folder / "run", Path("/run"), MS_BIND)
        for source, target in self._places():
            mount(source, target, MS_BIND)
            if unchangeable:
                mount(None, target, MS_REMOUNT | MS_BIND | MS_RDONLY)

    def _places(self) -> list[tuple[Path, Path]]:
        places = {"core": "/proc/sys/net/core", "irq": "/proc/irq"}
        places["ipfrag_high_thresh"] = "/proc/sys/net/ipv4/ipfrag_high_thresh"
        found = [(self._folder / name, Path(target)) for name, target in places.items()]
        if DMA_LATENCY.exists():
            found.append((self._folder / "cpu_dma_latency", DMA_LATENCY))
        frequencies = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq")
        return [*found, *((self._folder / "no-frequencies", each) for each in frequencies)]
