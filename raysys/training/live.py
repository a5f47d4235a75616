"""Count the bytes of all tensors that are alive, whatever the device: what a computation takes at its peak."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary


class LiveBytes(TorchDispatchMode):
    """Context manager that counts the storages made within it; what existed before counts nothing.

    Storages are counted whole and once, however many tensors share them, from the operation that makes them until nothing holds
    them any more: activations kept for backward, gradients, temporaries between operations. What a kernel uses within one
    operation is not seen.
    """

    now: int
    """Bytes alive."""
    peak: int
    """The most that were alive at once, since the beginning or :meth:`forget_peak`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen = WeakIdKeyDictionary()

    def forget_peak(self) -> None:
        """Count the peak anew from what is alive now."""
        self.peak = self.now

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for given in tree_leaves((args, kwargs)):
            if isinstance(given, Tensor):
                self._seen.setdefault(given.untyped_storage(), None)
        result = function(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, Tensor) and made.device.type != "meta" and made.untyped_storage() not in self._seen:
                self._count(made.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._seen[storage] = None
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._release, size)

    def _release(self, size: int) -> None:
        self.now -= size
