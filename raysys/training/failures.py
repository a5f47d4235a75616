"""An error of one rank, told so that its cause can be found."""

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from typing import Protocol

from raysys.errors import RunFailed, UserError
from raysys.training.phases import Phases

_NAMED = 4  # samples


class Locator(Protocol):
    """What names samples: :class:`raysys.data.samples.Samples`."""

    def locate(self, sample: int) -> tuple[str, str]:
        """(shard, key) of a sample."""


def name_samples(ids: Sequence[int], samples: Locator) -> str:
    """Samples as shard/key, the first few and how many more."""
    named = ["/".join(samples.locate(sample)) for sample in ids[:_NAMED]]
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(named) or 'none'}{more}"


@contextlib.contextmanager
def explain_failure(rank: int, phases: Phases, samples: Locator) -> Iterator[None]:
    """Errors raised inside tell rank, step, phase, the samples of this rank's batch, and the traceback, which Ray would drop.

    What is meant for people already (UserError, RunFailed) passes as it is.

    Args:
        rank: of this worker.
        phases: says where it is, and with which batch.
        samples: names the samples.

    Raises:
        RunFailed: in place of any other exception.
    """
    try:
        yield
    except (RunFailed, UserError):
        raise
    except Exception as error:
        batch = phases.batch
        about = f"\nsamples of this rank: {name_samples(batch.ids[: batch.count].tolist(), samples)}" if batch is not None else ""
        told = traceback.format_exc().strip()
        raise RunFailed(f"rank {rank} failed {phases.origin(error)}: {_short(error)}{about}\n{told}") from None


def _short(error: BaseException) -> str:
    """The error in one line."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
