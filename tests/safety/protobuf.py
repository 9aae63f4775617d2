"""Mistakes in a protobuf file: of its bytes, and of its fields wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tilec.wire import BYTES, FIXED32, FIXED64, VARINT, fields

Random = np.random.Generator

NUMBERS = (0, 1, 2, 7, 127, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
"""Values of varints: two's complement from 2**63 on."""

TEXTS = (
    b"",
    b"\xff\xfe\x00",
    b"../../../etc/passwd",
    b"/etc/passwd",
    b"..\\..\\x",
    b"C:\\x",
    b"a" * 70000,
    b"x\ny",
    b"x y[0]",
    b"__import__('os')",
    "Ünïcode ☃".encode(),
    b"float32",
)


@dataclass
class Item:
    """One field: its number, wire type and bytes, or the fields inside it."""

    number: int
    wire: int
    value: int | bytes
    inner: list[Item] | None = None
    text: bool = False


def read(data: bytes, descriptor: Descriptor) -> list[Item]:
    """The fields of a sound message."""
    items = []
    for each in fields(data, 0, len(data)):
        raw = data[each.start : each.end]
        item = Item(each.number, each.wire, each.value if each.wire == VARINT else raw)
        known = descriptor.fields_by_number.get(each.number)
        if each.wire == BYTES and known is not None:
            if known.type == FieldDescriptor.TYPE_MESSAGE:
                item.inner = read(raw, known.message_type)
            item.text = known.type == FieldDescriptor.TYPE_STRING
        items.append(item)
    return items


def write(items: list[Item]) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    for item in items:
        out += varint(item.number << 3 | item.wire)
        if item.wire == VARINT:
            assert isinstance(item.value, int)
            out += varint(item.value)
            continue
        payload = item.value if item.inner is None else write(item.inner)
        assert isinstance(payload, bytes)
        out += (varint(len(payload)) if item.wire == BYTES else b"") + payload
    return bytes(out)


def varint(value: int) -> bytes:
    """A number as seven bits a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def flip_bits(data: bytes, random: Random) -> bytes:
    """A few bits are inverted."""
    out = bytearray(data)
    for _ in range(int(random.integers(1, 9))):
        out[random.integers(len(out))] ^= 1 << int(random.integers(8))
    return bytes(out)


def truncate(data: bytes, random: Random) -> bytes:
    """The end is missing."""
    return data[: random.integers(len(data))]


def zero(data: bytes, random: Random) -> bytes:
    """A stretch of zeros."""
    begin, size = int(random.integers(len(data))), int(random.integers(1, 64))
    return data[:begin] + bytes(len(data[begin : begin + size])) + data[begin + size :]


def insert(data: bytes, random: Random) -> bytes:
    """Foreign bytes in between."""
    at = int(random.integers(len(data)))
    return data[:at] + random.bytes(int(random.integers(1, 16))) + data[at:]


def repeat(data: bytes, random: Random) -> bytes:
    """A stretch stands there twice."""
    begin, size = int(random.integers(len(data))), int(random.integers(1, 256))
    return data[: begin + size] + data[begin:]


BYTE_MISTAKES: tuple[Callable[[bytes, Random], bytes], ...] = (flip_bits, truncate, zero, insert, repeat)


def bodies(items: list[Item]) -> list[list[Item]]:
    """Every list of fields in a message, its own first."""
    return [items, *(body for item in items if item.inner is not None for body in bodies(item.inner))]


def field_mistake(data: bytes, descriptor: Any, random: Random) -> bytes:
    """One field somewhere is lost, doubled, moved, replaced or given an absurd value."""
    items = read(data, descriptor)
    filled = [body for body in bodies(items) if body]
    body = filled[random.integers(len(filled))]
    at = int(random.integers(len(body)))
    item = body[at]
    match random.integers(6):
        case 0:
            del body[at]
        case 1:
            body.insert(int(random.integers(len(body))), item)
        case 2:
            other = filled[random.integers(len(filled))]
            body[at] = other[random.integers(len(other))]
        case 3:
            body[at] = Item(int(random.integers(1, 25)), item.wire, item.value, item.inner)
        case 4:
            twin = [each for each in filled if each is not body and each[0].number == body[0].number] or [body]
            body[:] = twin[random.integers(len(twin))]
        case _:
            body[at] = absurd(item, random)
    return write(unrolled(items, 60))


def absurd(item: Item, random: Random) -> Item:
    """The field with a value of the same wire type that no exporter writes."""
    match item.wire:
        case 0:
            return Item(item.number, VARINT, NUMBERS[random.integers(len(NUMBERS))])
        case 5:
            return Item(item.number, FIXED32, random.bytes(4))
        case 1:
            return Item(item.number, FIXED64, random.bytes(8))
        case _ if item.text:
            return Item(item.number, BYTES, TEXTS[random.integers(len(TEXTS))])
        case _ if isinstance(item.value, bytes) and item.inner is None and 0 < len(item.value) <= 64:
            number = NUMBERS[random.integers(len(NUMBERS))].to_bytes(8, "little")
            at = 8 * int(random.integers(-(-len(item.value) // 8)))
            return Item(item.number, BYTES, (item.value[:at] + number + item.value[at + 8 :])[: len(item.value)])
        case _:
            return Item(item.number, BYTES, random.bytes(int(random.integers(0, 32))))


def unrolled(items: list[Item], depth: int) -> list[Item]:
    """The message without fields that contain themselves deeper than `depth`."""
    if depth == 0:
        return []
    return [
        item if item.inner is None else Item(item.number, item.wire, item.value, unrolled(item.inner, depth - 1))
        for item in items
    ]
