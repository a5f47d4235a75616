"""What a training step needs in memory and sends over the network: closed forms, without torch.

Symbols: W workers; T trained and F frozen parameters; p bytes of one weight (4, or 2 in half precision); N samples in the global
batch, n in one worker's share of it, m in a micro-batch. docs/scaling.md derives the formulas and compares them with what real
processes did. They describe DeepSpeed as :func:`raysys.training.engine.engine_config` sets it up; the stages are those of ZeRO
(Rajbhandari et al. 2020, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*).

"Bytes" of a collective are those of the whole tensor that it reduces or gathers. What a worker sends for it is :func:`ring_bytes`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

STAGES = (0, 1, 2, 3)
FLOAT32 = 4
"""Bytes."""

Collective = Literal["all_reduce", "all_gather", "reduce_scatter"]


@dataclass(frozen=True)
class Weights:
    """How large a system is; elements, but for the buffers."""

    trained: int
    """T."""
    frozen: int
    """F: in the engine, without gradient."""
    persistent: int
    """Those of them in tensors too small for ZeRO 3 to divide."""
    idle: int = 0
    """Those in other tensors that no forward pass uses, such as an image network whose vectors are kept."""
    buffers: int = 0
    """B, bytes of running statistics and the like, which stay in float32 on every worker."""
    statistics: int = 0
    """Elements of the running statistics of batch normalisation that is trained."""


@dataclass(frozen=True)
class Buckets:
    """Sizes of DeepSpeed's buffers, in elements; by default its own."""

    reduce: int = 500_000_000
    """`reduce_bucket_size`: gradients that are reduced together."""
    live: int = 1_000_000_000
    """`stage3_max_live_parameters`: weights that stage 3 keeps gathered at most."""
    persistent: int = 100_000
    """`stage3_param_persistence_threshold`: tensors smaller than this are never divided."""

    contiguous: bool = True
    """`contiguous_gradients`: a whole bucket is allocated for them, whatever they need."""

    @classmethod
    def of(cls, zero_optimization: Mapping[str, Any]) -> "Buckets":
        """From DeepSpeed's configuration; what it does not name has DeepSpeed's default."""
        names = {"reduce": "reduce_bucket_size", "live": "stage3_max_live_parameters", "persistent": "stage3_param_persistence_threshold"}
        sizes = {field: int(zero_optimization[name]) for field, name in names.items() if name in zero_optimization}
        return cls(**sizes, contiguous=bool(zero_optimization.get("contiguous_gradients", True)))


@dataclass(frozen=True)
class Memory:
    """Bytes of one worker, at the moment when each part is largest."""

    weights: float
    gradients: float
    optimizer: float
    """Float32 master weights, two moments, and the moving average where there is one."""
    buffers: float
    """What gradients and weights pass through on their way between workers."""
    activations: float
    """Kept between forward and backward of one micro-batch."""
    loss: float
    """The global batch's vectors and what the losses keep for backward."""
    pixels: float
    """The worker's share of the batch as it came."""
    process: float = 0.0
    """The interpreter and its libraries, where they share the memory."""
    cached: bool = False
    """Whether gradients are cached: the loss is then gone before activations are kept."""

    @property
    def total(self) -> float:
        """All parts at once; with cached gradients the larger one of activations and loss."""
        state = self.weights + self.gradients + self.optimizer + self.buffers + self.pixels + self.process
        return state + (max(self.activations, self.loss) if self.cached else self.activations + self.loss)


@dataclass(frozen=True)
class Traffic:
    """A collective operation of a training step."""

    what: str
    """In words."""
    kind: Collective
    bytes: float
    """Of the whole tensor, over all calls of the step."""


def weight_bytes(weights: Weights, stage: int, workers: int, p: int) -> float:
    """Stages 0–2: p (T + F) + B. Stage 3: p ((T + F) / W + persistent) + B: persistent ones are whole beside their parts (one worker's
    parts are whole themselves)."""
    parameters = weights.trained + weights.frozen
    if stage == 3 and workers > 1:
        return p * (parameters / workers + weights.persistent) + weights.buffers
    return p * parameters + weights.buffers


def gradient_bytes(weights: Weights, stage: int, workers: int, p: int, passes: int = 1) -> float:
    """Stages 0 and 1: p T. Stages 2 and 3: p T / W where there is one backward pass; p T and p T / W where there are several.

    Gradients of several passes are added up on each worker and reduced once, at the end; in bfloat16 they are added up in float32,
    4 T more.
    """
    whole = p * weights.trained
    if passes > 1:
        sums = FLOAT32 * weights.trained if p < FLOAT32 else 0
        return whole + sums + (whole / workers if stage >= 2 else 0)
    return whole / workers if stage >= 2 else whole


def optimizer_bytes(weights: Weights, stage: int, workers: int, p: int, averages: bool = False) -> float:
    """(4 + 8 + 4 with a moving average) T / W: masters, two moments, average.

    Stage 0 divides nothing, and in float32 keeps no masters beside the weights.
    """
    kept = 2 + averages + (stage > 0 or p < FLOAT32)
    return FLOAT32 * kept * weights.trained / (workers if stage else 1)


def buffer_bytes(weights: Weights, stage: int, workers: int, p: int, buckets: Buckets) -> float:
    """Stage 0: p min(T, bucket), gradients flattened for the reduction. Stages 1–3: as much, or p bucket where it is allocated whole;
    stage 3 beside it p min(gathered, live), weights gathered for forward and backward."""
    flattened = p * min(weights.trained, buckets.reduce)
    if stage == 0:
        return flattened if workers > 1 else 0
    gathered = p * min(gathered_weights(weights), buckets.live) if stage == 3 else 0
    return (p * buckets.reduce if buckets.contiguous else flattened) + gathered


def state_traffic(weights: Weights, stage: int, p: int, fetches: int = 1) -> list[Traffic]:
    """What is sent of weights and gradients in one step, however many micro-batches it has.

    Args:
        weights: sizes.
        stage: of ZeRO.
        p: bytes of a weight.
        fetches: how often stage 3 gathers the weights in a step, :func:`weight_fetches`.
    """
    whole = p * weights.trained
    statistics = Traffic("running statistics, in float64", "all_reduce", 8 * weights.statistics)
    if stage == 0:
        return [statistics, Traffic("gradients", "all_reduce", whole)]
    if stage in (1, 2):
        return [statistics, Traffic("gradients", "all_reduce", whole), Traffic("updated weights", "all_gather", whole)]
    return [
        statistics,
        Traffic("gradients", "reduce_scatter", whole),
        Traffic("weights, when used", "all_gather", fetches * p * gathered_weights(weights)),
        Traffic("updated small weights", "all_gather", p * weights.persistent),
    ]


def gathered_weights(weights: Weights) -> int:
    """Elements that ZeRO 3 gathers before they are used: T + F − persistent − idle."""
    return weights.trained + weights.frozen - weights.persistent - weights.idle


def weight_fetches(micro_batches: int, cached: bool) -> int:
    """How often ZeRO 3 gathers all weights in a step: once for each micro-batch, whose weights stay gathered from forward to backward
    while `stage3_max_live_parameters` allows. With cached gradients three times: passes without a graph change the order that DeepSpeed
    has learned, and so forward and backward gather each for itself."""
    return micro_batches * (3 if cached else 1)


def vector_traffic(row_bytes: float, gradient_row_bytes: float, counts: Sequence[int]) -> list[Traffic]:
    """The gather of all workers' rows: forward all_gather W · max(counts) · row, backward all_reduce Σ counts · row.

    Args:
        row_bytes: of one sample's vectors, labels and numbers, all that `forward` returns.
        gradient_row_bytes: of those that receive a gradient.
        counts: samples of each worker; workers with fewer send padding.
    """
    return [
        Traffic("vectors, forward", "all_gather", len(counts) * max(counts) * row_bytes),
        Traffic("vectors' gradients", "all_reduce", sum(counts) * gradient_row_bytes),
    ]


def ring_bytes(traffic: Traffic, workers: int) -> float:
    """What each worker sends (and receives) for a collective of B bytes on a ring.

    All-gather and reduce-scatter: B (W − 1) / W. All-reduce, which is one after the other: 2 B (W − 1) / W
    (Patarasuk and Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*).
    """
    return (2 if traffic.kind == "all_reduce" else 1) * traffic.bytes * (workers - 1) / workers


def node_bytes(sent: float, workers: int, workers_per_node: int) -> float:
    """Bytes that leave a node where each worker sends `sent` on a ring: as many, for one worker of each node has its neighbour on the
    next node; none where all workers share a node."""
    return sent if workers > workers_per_node else 0.0


def loss_growth(small: int, small_value: float, large: int, large_value: float) -> tuple[float, float]:
    """(a, b) of a N + b N² from measurements at two sizes, of bytes or seconds; neither is negative."""
    b = (large_value / large - small_value / small) / (large - small)
    b = max(b, 0.0)
    return max(small_value / small - b * small, 0.0), b


def line_through(small: int, small_value: float, large: int, large_value: float, at: int) -> float:
    """The straight line through two measurements, at another size; never falling, never below 0."""
    slope = max((large_value - small_value) / (large - small), 0.0)
    return max(large_value + slope * (at - large), 0.0)


def step_seconds(forward_backward: float, forward: float, micro_batches: int, cached: bool, loss: float, update: float) -> float:
    """Seconds of a step without communication and waiting for data.

    One or several micro-batches M on a worker: M · (forward and backward) + losses + update. Cached gradients add M · forward;
    plain accumulation computes as many (smaller) losses.
    """
    return micro_batches * (forward_backward + (forward if cached else 0.0)) + loss + update


def checkpoint_bytes(weights: Weights, p: int, averages: bool = False) -> float:
    """What a checkpoint holds, all workers together: float32 weights and two moments of what is trained, their moving average where
    there is one, frozen weights as they are, buffers: (12 + 4) T + p F + B."""
    return FLOAT32 * (3 + averages) * weights.trained + p * weights.frozen + weights.buffers
