"""Reads on behind damage in a tar: looks for the next header whose checksum holds."""

from collections.abc import Iterator
from typing import BinaryIO

from raysys.shards.headers import BLOCK, parse_header
from raysys.shards.tar import Member, ShardError, iterate_members
from raysys.storage import Storage

_MAGIC = b"ustar"
_MAGIC_AT = 257
"""Place of the magic word in a header."""
_WINDOW = 4 << 20


def salvage_members(storage: Storage, uri: str, size: int) -> Iterator[Member | ShardError]:
    """The members of a tar that can be read, and an error in the place of every stretch that cannot.

    Headers are looked for at every byte, not at whole blocks only, since bytes may have been lost or inserted. Old tars without the
    word "ustar" in their headers are read up to the first damage. A member whose content is itself a tar and in whose header the
    damage lies gives the members of that tar.
    """
    begin: int | None = 0
    told = ""
    while begin is not None:
        end = begin
        with storage.open(uri) as file:
            _skip(file, begin)
            try:
                for member in iterate_members(file, size, uri, begin):
                    yield member
                    end = member.offset + member.size
                return
            except ShardError as error:
                damage = error
        if str(damage) != told:
            yield damage
        told = str(damage)
        # Where bytes were lost, the next header lies in what was taken for the content of the last member, which was not handed on.
        begin = next_header(storage, uri, size, max(end, begin + 1))


def next_header(storage: Storage, uri: str, size: int, begin: int) -> int | None:
    """Offset of the first sound header at or after byte `begin`; None if there is no other."""
    at = begin
    while at + BLOCK <= size:
        window = storage.read(uri, at, min(_WINDOW + BLOCK, size - at))
        found = window.find(_MAGIC, _MAGIC_AT)
        while 0 <= found <= len(window) - (BLOCK - _MAGIC_AT):
            start = found - _MAGIC_AT
            if _is_header(window[start : start + BLOCK], at + start):
                return at + start
            found = window.find(_MAGIC, found + 1)
        at += _WINDOW
    return None


def _is_header(block: bytes, byte: int) -> bool:
    try:
        parse_header(block, byte, "")
    except ShardError:
        return False
    return True


def _skip(file: BinaryIO, count: int) -> None:
    """Go to byte `count` of a file that was just opened."""
    if file.seekable():
        file.seek(count)
        return
    while count:
        count -= len(file.read(min(_WINDOW, count)))
