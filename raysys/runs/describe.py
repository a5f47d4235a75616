"""What a run is, in lines for people, before it is started."""

import os
from collections.abc import Sequence

from raysys.data.grouped_plan import GroupedPlan
from raysys.data.plan import Plan
from raysys.runs.run import Run
from raysys.systems.settings import without_effect
from raysys.training.settings import TrainingSettings


def describe(run: Run) -> list[str]:
    """The plan in lines for people."""
    plan, counts = run.plan, run.samples.counts()
    languages = ", ".join(f"{tag} {n}" for tag, n in counts.items())
    lines = describe_training(
        run, f"data {len(run.samples)} samples in {len(counts)} languages ({languages})", negatives(plan, run.settings.training)
    )
    if isinstance(plan, GroupedPlan):
        lines.append(f"batches balanced by language; {describe_passes(plan, run.samples.languages)}")
    if idle := without_effect(run.settings.system, run.settings.objective):
        lines.append(f"without effect on the system {run.settings.system}: {', '.join(idle)}")
    return lines


def describe_training(run: Run, data: str, batch: str) -> list[str]:
    """The run, its `data`, its steps, its workers and what they do with a `batch`, in lines for people."""
    training, plan, resumed = run.settings.training, run.plan, run.checkpoints.next_step()
    lines = [
        f"run {run.folder.uri}" + (f", resumed at step {resumed}" if resumed else ""),
        data,
        f"plan {run.total_steps} steps of {training.global_batch} samples, {plan.steps_per_epoch} steps an epoch"
        + (f", {plan.dropped_per_epoch} samples left out of each epoch in turn" if plan.dropped_per_epoch else ""),
        f"workers {training.workers}, ZeRO {training.zero_stage}, {training.precision}; {batch}",
    ]
    cpus = training.max_workers * training.cpus_per_worker
    if not os.environ.get("RAY_ADDRESS") and cpus > (os.cpu_count() or 1):
        lines.append(f"these workers share the {os.cpu_count()} CPUs of this machine, and are slower than on {cpus}")
    return lines


def describe_passes(plan: GroupedPlan, groups: Sequence[str]) -> str:
    """How often the samples of each of the `groups` are seen in an epoch, in words."""
    passes = ", ".join(f"{name} {often:.2g}" for name, often in zip(groups, plan.passes_per_epoch, strict=True))
    return f"in an epoch the samples of each are seen so often: {passes}"


def negatives(plan: Plan, training: TrainingSettings) -> str:
    """What a sample is compared with in a step, in words."""
    sizes = plan.micro_batch_sizes(plan.global_batch, training.min_workers)
    turns, largest, others = max(map(len, sizes)), max(map(max, sizes)), plan.global_batch - 1
    if training.accumulation == "plain" and turns > 1:
        seen = sum(of_worker[0] for of_worker in sizes) - 1
        return (
            f"each sample is compared with {seen} others only (plain accumulation over {turns} micro-batches of {largest} a worker), "
            f"not with the {others} of the global batch as by training.accumulation exact"
        )
    ways = f"exact accumulation over {turns} micro-batches of {largest} samples a worker" if turns > 1 else f"{largest} samples a worker"
    return f"each sample is compared with the {others} others of the global batch ({ways})"
