"""The protobuf wire format, as needed to traverse a model file without reading its weights into memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass

Buffer = bytes | mmap.mmap

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(Exception):
    """The bytes are no protobuf message; `truncated` when they end in the middle of a field."""

    def __init__(self, message: str, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: its number, wire type, value (varints only) and the bytes [start, end) of its payload;
    `begin` is the position of its key."""

    number: int
    wire: int
    value: int
    begin: int
    start: int
    end: int


def fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in data[start:end], in order. Raises WireError."""
    position = start
    while position < end:
        begin = position
        key, position = _varint(data, position, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise WireError(f"field number 0 at byte {begin}")
        value = 0
        first = position
        if wire == VARINT:
            value, position = _varint(data, position, end)
        elif wire == FIXED64:
            position += 8
        elif wire == FIXED32:
            position += 4
        elif wire == BYTES:
            size, first = _varint(data, position, end)
            position = first + size
        else:
            raise WireError(f"wire type {wire} at byte {begin}")
        if position > end:
            raise WireError(f"a field at byte {begin} needs {position - end} bytes more than there are", truncated=True)
        yield Field(number, wire, value, begin, first, position)


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """The varint at `position` and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError(f"the bytes end inside a number at byte {position}", truncated=True)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise WireError(f"a number of more than ten bytes at byte {position}")
