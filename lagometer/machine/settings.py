# SPDX-License-Identifier: Apache-2.0
"""The settings for low latency and their values. Paths are below a root folder, so a test can have its
own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
# Room for messages of 1 MB and more. A limit is raised, never lowered.
SYSCTLS_MIN = {
    "net.core.rmem_max": 64 * MIB,
    "net.core.wmem_max": 64 * MIB,
    "net.core.netdev_max_backlog": 10_000,
    "net.ipv4.ipfrag_high_thresh": 128 * MIB,
}
GOVERNOR = "performance"
DMA_LATENCY = "dev/cpu_dma_latency"


@dataclass(frozen=True)
class Wanted:
    """One setting: a file, relative to the root, and its wanted text.

    obstacle: why it can't be set here, empty if it can be tried.
    """

    name: str
    path: str
    value: str
    obstacle: str = ""


def wanted(root: Path) -> list[Wanted]:
    """Every setting with its wanted value, including those that already have it."""
    return [*_governors(root), *_sysctls(root), *_interrupts(root)]


def read(root: Path, path: str) -> str | None:
    """The text of a setting's file; None if it can't be read."""
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _governors(root: Path) -> Iterator[Wanted]:
    folder = "sys/devices/system/cpu"
    paths = sorted(root.glob(f"{folder}/cpu[0-9]*/cpufreq/scaling_governor"))
    if not paths:
        yield Wanted("governor", folder, GOVERNOR, "the kernel scales no frequencies (a virtual machine?)")
    for path in paths:
        relative = str(path.relative_to(root))
        offered = read(root, relative.replace("scaling_governor", "scaling_available_governors")) or ""
        obstacle = "" if GOVERNOR in offered.split() else f"the driver offers {offered or 'none'} only"
        yield Wanted(f"governor {path.parent.parent.name}", relative, GOVERNOR, obstacle)


def _sysctls(root: Path) -> Iterator[Wanted]:
    for name, minimum in SYSCTLS_MIN.items():
        path = "proc/sys/" + name.replace(".", "/")
        current = read(root, path)
        if current is None or not current.isdigit():
            yield Wanted(name, path, str(minimum), "the kernel does not show it here (a network namespace?)")
        else:
            yield Wanted(name, path, str(max(minimum, int(current))))


def _interrupts(root: Path) -> Iterator[Wanted]:
    """All interrupts go to the first CPU, so they leave the others alone."""
    paths = sorted(root.glob("proc/irq/[0-9]*/smp_affinity_list"), key=lambda path: int(path.parent.name))
    if not paths:
        yield Wanted("interrupts", "proc/irq", "0", "the kernel shows no interrupts here")
    for path in paths:
        yield Wanted(f"interrupt {path.parent.name}", str(path.relative_to(root)), "0")
