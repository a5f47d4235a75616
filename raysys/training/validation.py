"""Scoring the networks on the validation data while training goes on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import torch

from raysys.data.batches import BatchFinisher, Rows
from raysys.data.plan import slice_bounds, slice_sizes
from raysys.data.shares import Share
from raysys.training.gather import gather_all
from raysys.training.job import Place, TrainingJob
from raysys.training.ledger import SampleAccounts
from raysys.training.phases import Phases


def validation_batches(job: TrainingJob, place: Place, accounts: SampleAccounts, phases: Phases) -> list[tuple[Rows, list[int]]]:
    """This worker's shares of the validation samples, each with all workers' counts; of the size of training's micro-batches."""
    found = []
    for share in _read(job, place, accounts) if job.validation else ():
        found.append(share)
        phases.tick()
    return found


def _read(job: TrainingJob, place: Place, accounts: SampleAccounts) -> Iterator[tuple[Rows, list[int]]]:
    assert job.validation is not None
    builder = job.validation.builder
    finisher = BatchFinisher(job.image, job.decode_threads, builder)
    samples = len(builder.samples)
    size = -(-job.plan.global_batch // (job.plan.micro_batches or place.workers)) * place.workers
    for index, start in enumerate(range(0, samples, size)):
        ids = np.arange(start, min(start + size, samples))
        bounds = slice_bounds(len(ids), place.workers)
        (payload,) = builder([Share(index, 0, ids[bounds[place.rank] : bounds[place.rank + 1]])])
        batch = finisher(payload)
        accounts.note_left_out(batch)
        yield batch, slice_sizes(len(ids), place.workers)


def validate(
    engine: Any, job: TrainingJob, place: Place, batches: list[tuple[Rows, list[int]]], phases: Phases
) -> tuple[dict[str, float], float | None]:
    """Metrics of the live weights on the validation data, and the one by which the best checkpoint is chosen, if it is finite.

    All ranks compute vectors; rank 0 alone scores them, and the others are told nothing.
    """
    if job.validation is None:
        return {}, None
    engine.eval()
    parts: list[dict[str, np.ndarray]] = []
    with torch.no_grad():
        for batch, counts in batches:
            sound = torch.ones(len(batch.ids), dtype=torch.bool, device=place.device)
            sound[[one.row for one in batch.replaced]] = False
            gathered = gather_all({**engine(batch.to(place.device)), "sound": sound}, counts)
            kept = gathered.pop("sound")
            vectors = {name: rows[kept] for name, rows in gathered.items()} if place.rank == 0 else {}
            parts.append(
                {name: rows.float().cpu().numpy() if rows.is_floating_point() else rows.cpu().numpy() for name, rows in vectors.items()}
            )
            phases.tick()
    engine.train()
    if place.rank:
        return {}, None
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with ThreadPoolExecutor(1) as pool:
        scoring = pool.submit(job.validation.score, together)
        while not wait([scoring], timeout=1.0).done:
            phases.tick()
    metrics = scoring.result()
    score = metrics.get(job.validation.metric)
    return metrics, score if score is not None and np.isfinite(score) else None
