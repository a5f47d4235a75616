"""Reads pickles of plain containers and numpy arrays, and runs nothing that is in them.

A pickle is a program: it may ask for any function of any module and call it. Here the few names that arrays and plain containers need
are answered with stand-ins that only note down how they were called; arrays are then made from those notes, and only of numbers. Every
other name ends the reading.
"""

import io
import pickle
import re
from typing import Any

import numpy as np

_NUMBERS = re.compile(r"[biuf][1248]")
_CORES = ("numpy.core", "numpy._core")
"""The module's name before and since numpy 2."""


class PickleError(Exception):
    """The bytes are no pickle, are cut, or hold an array that cannot be made of them."""


class PickleRefused(PickleError):
    """The pickle asks for something else than containers and arrays; it was not given it."""


class _Call:
    """A note that a stand-in was called, and with which state."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...]):
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _StandIn:
    """What is given to a pickle that asks for a function or class."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *arguments: Any) -> _Call:
        return _Call(self.name, arguments)


class _Bytes(_StandIn):
    """Stands in for ``_codecs.encode``, by which old pickles write bytes."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> bytes:  # type: ignore[override]
        text, encoding = arguments
        if encoding not in ("latin1", "latin-1"):
            raise PickleError("it holds bytes in an unknown encoding")
        return str.encode(text, "latin1")


class _Container(_StandIn):
    """Stands in for the containers that old pickles make by a call: ``set([…])``, ``frozenset([…])`` and the empty ``bytes()``."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        kind = {"set": set, "frozenset": frozenset, "bytes": bytes}[self.name]
        if not all(isinstance(argument, list | tuple) for argument in arguments):
            raise PickleError("it holds a container of an unexpected kind")
        return kind(*arguments)


_KNOWN: dict[tuple[str, str], type[_StandIn]] = {
    ("numpy", "ndarray"): _StandIn,
    ("numpy", "dtype"): _StandIn,
    ("_codecs", "encode"): _Bytes,
    **{(builtins, name): _Container for builtins in ("builtins", "__builtin__") for name in ("set", "frozenset", "bytes")},
    **{(f"{core}.multiarray", name): _StandIn for core in _CORES for name in ("_reconstruct", "scalar")},
    **{(f"{core}.numeric", "_frombuffer"): _StandIn for core in _CORES},
}


class _Reader(pickle._Unpickler):  # the one in Python: that in C can be made to fill the memory by a few wrong bytes
    def find_class(self, module: str, name: str) -> Any:
        """Instead of importing: a stand-in for a known name, made anew so that nothing a pickle does to it outlives the reading."""
        if (module, name) not in _KNOWN:
            raise PickleRefused(f"its pickle asks for {module}.{name}; only arrays of numbers and plain containers are read from pickles")
        return _KNOWN[module, name](name)


def loads(data: bytes) -> Any:
    """What a pickle holds: numbers, text, bytes, lists, tuples, dicts, sets. Arrays in it are made by :func:`array`, one by one.

    Raises:
        PickleRefused: it asks for a function or class that arrays do not need (names it).
        PickleError: it is damaged.
    """
    try:
        return _Reader(io.BytesIO(data), encoding="latin1").load()
    except PickleError:
        raise
    except Exception as error:  # what a damaged pickle leads to can be any kind of error
        raise PickleError(f"its pickle cannot be read ({' '.join(str(error).split()) or type(error).__name__})") from None


def array(value: Any) -> np.ndarray | None:
    """The array (or scalar, as an array without dimensions) that `value` of :func:`loads` stands for; None if it stands for none.

    Raises:
        PickleError: it is an array of something else than numbers, or its size and its bytes do not fit.
    """
    if not isinstance(value, _Call):
        return None
    order: Any = "C"
    try:
        if value.name == "_reconstruct":
            shape, kind, is_fortran, data = value.state[-4:]
            order = "F" if is_fortran else "C"
        elif value.name == "_frombuffer":
            data, kind, shape, order = value.arguments
        elif value.name == "scalar":
            kind, data = value.arguments
            shape = ()
        else:
            return None
        data = data.encode("latin1") if isinstance(data, str) else data  # as Python 2 wrote it
        return np.frombuffer(data, _dtype(kind)).reshape(tuple(int(side) for side in shape), order=order)
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise PickleError(f"an array in it cannot be read ({' '.join(str(error).split())})") from None


def _dtype(kind: Any) -> np.dtype:
    if not isinstance(kind, _Call) or kind.name != "dtype" or not _NUMBERS.fullmatch(str(kind.arguments[0])):
        raise PickleError("an array in it is not of numbers")
    order = kind.state[1] if kind.state else "="
    return np.dtype(("<" if order == "<" else ">" if order == ">" else "=") + kind.arguments[0])
