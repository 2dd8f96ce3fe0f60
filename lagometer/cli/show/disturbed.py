# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: preemption over the campaign, and queues that build up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import Queue
    from lagometer.summary.data import Preemption

RANKED_SHOWN = 3


def render_preemption(preemption: Preemption | None, console: Console) -> None:
    """Prints how much threads were preempted, the effect on the figures, and the worst trials."""
    if preemption is None:
        return
    console.print(
        f"\n[bold]preempted[/] more than once in 10 messages: {preemption.trials_above} of "
        f"{preemption.trials} trials "
        f"(median {preemption.per_message_median:.2g} per message)",
        soft_wrap=True,
    )
    if preemption.p50_change is not None:
        tail = f", p99 {_change(preemption.p99_change)}" if preemption.p99_change is not None else ""
        console.print(
            f"  the quieter half of each cell's trials: p50 {_change(preemption.p50_change)}{tail} "
            "against all",
            soft_wrap=True,
        )
    if not preemption.trials_outstanding:
        console.print("  no trial stands out of this campaign, so none is flagged", soft_wrap=True)
        return
    console.print(f"  {preemption.trials_outstanding} stand out of this campaign and are flagged; the most:")
    for trial in [trial for trial in preemption.ranked if trial.stands_out][:RANKED_SHOWN]:
        p50 = f"p50 {duration_text(trial.latency_p50_ns)}, of its cell {duration_text(trial.cell_p50_ns)}"
        console.print(f"    {trial.cell} #{trial.trial}", markup=False, soft_wrap=True)
        console.print(f"      {trial.per_message:.2g} per message, {trial.times:.2g} × the median; {p50}")


def _change(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:+.2g} %"


def render_queues(queues: Sequence[Queue], console: Console) -> None:
    """Prints the cells in which a queue builds up, with the slope."""
    if not queues:
        return
    console.print(
        "\n[bold yellow]a queue builds up[/]: these p50 (↗) depend on how long a trial is", soft_wrap=True
    )
    for queue in queues:
        console.print(f"  {queue.cell}", markup=False, soft_wrap=True)
        console.print(f"    {queue_text(queue)}", markup=False, soft_wrap=True)
        if queue.waiting is not None:
            console.print(f"    {queue.waiting}", markup=False, soft_wrap=True)


def queue_text(queue: Queue) -> str:
    """median response time grows by 330 ms a second (3 of 3 trials)."""
    slope = f"{duration_text(queue.growth_ns_per_s)} a second"
    return f"median response time grows by {slope} ({queue.trials_growing} of {queue.trials} trials)"
