"""Count what really goes through torch.distributed, whoever calls it."""

from collections import Counter
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = {
    "c10d::allreduce_": "all_reduce",
    "c10d::allgather_": "all_gather",
    "c10d::_allgather_base_": "all_gather",
    "c10d::allgather_into_tensor_coalesced_": "all_gather",
    "c10d::reduce_scatter_": "reduce_scatter",
    "c10d::_reduce_scatter_base_": "reduce_scatter",
    "c10d::reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "c10d::broadcast_": "broadcast",
    "c10d::reduce_": "reduce",
}
"""Operators that send tensors, and what they do."""
_SILENT = ("c10d::barrier", "c10d::monitored_barrier_")


class CollectiveBytes(TorchDispatchMode):
    """Context manager in which every collective operation is counted and carried out.

    All of them, DeepSpeed's too, go through torch's operators of the namespace c10d. The bytes of one are those of the whole tensor
    that is reduced or gathered, as in :class:`raysys.training.estimate.Traffic`.

    Raises:
        NotImplementedError: an operator that is not in :data:`KINDS`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()
        """By kind."""
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name
        if name.startswith("c10d::") and name not in _SILENT:
            if name not in KINDS:
                raise NotImplementedError(f"{name} is not counted")
            sizes = [sum(one.nbytes for one in tree_leaves(argument) if isinstance(one, Tensor)) for argument in args]
            self.bytes[KINDS[name]] += max(sizes)
            self.calls[KINDS[name]] += 1
        return function(*args, **(kwargs or {}))
