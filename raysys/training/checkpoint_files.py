"""The files of a checkpoint: every rank's fragments as safetensors, and beside each file an index with its checksums.

A file holds 1-D tensors called ``<kind>/<name>``: the stretch of the flattened parameter or buffer that a rank wrote. Where the stretch
begins and what shape the whole tensor has stands in the header's metadata, so that any number of ranks can find what they
need and read no more than that, by ranges of bytes. The form is that of https://github.com/huggingface/safetensors (8 bytes
length of the header, the header as JSON, the tensors). The index holds a CRC-32 for each block of the file: what is read is
checked, however little it is.
"""

import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from raysys.storage import Storage, join
from raysys.training.checkpoint_mark import Mark

BLOCK = 1 << 20
"""Bytes with a checksum of their own."""
RUN = 32 * BLOCK
"""Bytes that are read at once at most."""
READERS = 8
"""Reads in flight, each of up to RUN bytes."""
DTYPES = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool},
}
"""As safetensors calls them."""


class Damaged(Exception):
    """Bytes of a checkpoint are not those that were written."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a flattened tensor, in memory."""

    key: str
    """``<kind>/<name>``, such as ``exp_avg/text.norm.weight``."""
    shape: tuple[int, ...]
    """Of the whole tensor."""
    start: int
    """Where in the flattened tensor the stretch begins."""
    values: Tensor
    """[n]; shares the memory of what it is a piece of."""

    def part(self, first: int, last: int) -> "Piece":
        """The stretch's elements from `first` up to `last`."""
        return Piece(self.key, self.shape, self.start + first, self.values[first:last])


def file_name(rank: int, workers: int, writing: str) -> str:
    """Name of a rank's file of tensors."""
    return f"rank-{rank:05d}-of-{workers:05d}-{writing}.safetensors"


def index_of(name: str) -> str:
    """Name of the index of a file of tensors."""
    return name.removesuffix(".safetensors") + ".json"


class TensorFile:
    """A file of tensors in storage; every byte that is read from it was checked.

    Raises:
        Damaged: its index is not the one that was written.
    """

    def __init__(self, storage: Storage, folder: str, mark: Mark, index: str):
        self.name = index.removesuffix(".json") + ".safetensors"
        self._storage, self._uri = storage, join(folder, self.name)
        told = storage.read(join(folder, index))
        if (len(told), zlib.crc32(told)) != mark.files[index]:
            raise Damaged(f"{index}: its checksum does not fit")
        values = json.loads(told)
        self.size: int = values["size"]
        self.header_size, self._header_checksum = values["header"]
        self._block, self._checksums = values["block"], values["checksums"]

    def header(self) -> dict[str, Any]:
        """The header."""
        return json.loads(self._checked(0, self.header_size, [(self.header_size, self._header_checksum)])[8:])

    def read(self, begin: int, end: int) -> tuple[int, bytearray]:
        """(where they begin, the bytes of all blocks that hold the bytes from `begin` up to `end`)."""
        first, last = begin // self._block, -(-end // self._block)
        borders = [min(block * self._block, self.size) for block in range(first, last + 1)]
        lengths = [after - before for before, after in itertools.pairwise(borders)]
        blocks = list(zip(lengths, self._checksums[first:last], strict=True))
        return borders[0], self._checked(borders[0], borders[-1] - borders[0], blocks)

    def _checked(self, offset: int, size: int, blocks: list[tuple[int, int]]) -> bytearray:
        """Bytes whose consecutive blocks, given as (size, checksum), are as they were written."""
        data = self._storage.read(self._uri, offset, size)
        if not _fits(data, blocks):
            # Storage is hardly ever wrong twice in the same way: what fails a second time is damaged.
            data = self._storage.read(self._uri, offset, size)
            if not _fits(data, blocks):
                raise Damaged(f"{self.name}: the checksum of bytes {offset} to {offset + size} does not fit")
        return bytearray(data)


def _fits(data: bytes, blocks: list[tuple[int, int]]) -> bool:
    view, position = memoryview(data), 0
    for size, checksum in blocks:
        if zlib.crc32(view[position : position + size]) != checksum:
            return False
        position += size
    return position == len(data)


@dataclass
class Stored:
    """A tensor of a checkpoint, wherever its pieces lie."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: list[tuple[int, int, TensorFile, int]]
    """(start in the flattened tensor, elements, file, byte in the file)."""

    def gap(self) -> str | None:
        """What is wrong with its pieces, which should cover it once; None where nothing is."""
        position = 0
        for start, count, _, _ in sorted(self.pieces, key=lambda piece: piece[0]):
            if start != position:
                return f"elements {min(start, position)} to {max(start, position)} are {'missing' if start > position else 'there twice'}"
            position += count
        total = torch.Size(self.shape).numel()
        return None if position == total else f"{position} of {total} elements are there"


class CheckpointReader:
    """A complete checkpoint in storage.

    Args:
        storage: the door to it.
        uri: its folder.
        mark: what ``complete.json`` says.

    Raises:
        Damaged: an index or a header is not as it was written.
    """

    def __init__(self, storage: Storage, uri: str, mark: Mark):
        self.state = mark.state
        self.stored: dict[str, Stored] = {}
        """By key."""
        self.extras: dict[str, Any] = {}
        """What the files tell beside their tensors."""
        with ThreadPoolExecutor(READERS) as pool:
            self.files = list(pool.map(lambda index: TensorFile(storage, uri, mark, index), mark.indices))
            headers = list(pool.map(TensorFile.header, self.files))
        for file, header in zip(self.files, headers, strict=True):
            metadata = header.pop("__metadata__")
            self.extras |= json.loads(metadata["extras"])
            starts = json.loads(metadata["pieces"])
            for key, entry in header.items():
                start, shape = starts[key]
                stored = self.stored.setdefault(key, Stored(tuple(shape), DTYPES[entry["dtype"]], []))
                stored.pieces.append((start, entry["shape"][0], file, file.header_size + entry["data_offsets"][0]))

    def read(self, pieces: Iterable[Piece], tick: Callable[[], object] = lambda: None) -> None:
        """Fill `pieces` with what was stored, whichever ranks wrote it; calls `tick` as it comes.

        Raises:
            Damaged: bytes are not as they were written.
        """
        wanted: dict[TensorFile, list[tuple[int, int, Tensor]]] = {}
        for piece in pieces:
            stored, end = self.stored[piece.key], piece.start + piece.values.numel()
            width = piece.values.element_size()
            for start, count, file, offset in stored.pieces:
                first, last = max(start, piece.start), min(start + count, end)
                if first < last:
                    begin = offset + (first - start) * width
                    target = piece.values[first - piece.start : last - piece.start]
                    wanted.setdefault(file, []).append((begin, begin + target.nbytes, target))
        with ThreadPoolExecutor(READERS) as pool:
            runs = [(file, run, targets) for file, targets in wanted.items() for run in _runs(targets)]
            for _ in pool.map(lambda work: _fill(*work), runs):
                tick()

    def faults(self) -> Iterator[str]:
        """Read every byte; one line for each stretch whose checksum does not fit, and for each tensor that is not whole."""
        runs = [(file, begin) for file in self.files for begin in range(0, file.size, RUN)]
        with ThreadPoolExecutor(READERS) as pool:
            yield from filter(None, pool.map(lambda run: _fault(*run), runs))
        for key, stored in self.stored.items():
            if gap := stored.gap():
                yield f"{key}: {gap}"


def _fault(file: TensorFile, begin: int) -> str | None:
    try:
        file.read(begin, min(begin + RUN, file.size))
    except Damaged as damage:
        return str(damage)
    return None


def _runs(targets: list[tuple[int, int, Tensor]]) -> Iterator[tuple[int, int]]:
    """Stretches of a file, of RUN bytes at most, that together hold all targets; neighbours are read at once."""
    targets.sort(key=lambda target: target[0])
    begin, end = targets[0][0], targets[0][1]
    for first, last, _ in [*targets[1:], (2**63, 2**63, None)]:
        if first - end < BLOCK:
            end = max(end, last)
            continue
        while begin < end:
            border = min(end, begin - begin % RUN + RUN)
            yield begin, border
            begin = border
        begin, end = first, last


def _fill(file: TensorFile, run: tuple[int, int], targets: list[tuple[int, int, Tensor]]) -> None:
    base, data = file.read(*run)
    for begin, end, target in targets:
        first, last = max(begin, run[0]), min(end, run[1])
        if first < last:
            width = target.element_size()
            values = torch.frombuffer(data, dtype=target.dtype, count=(last - first) // width, offset=first - base)
            target[(first - begin) // width : (last - begin) // width].copy_(values)
