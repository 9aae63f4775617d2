"""What parameters were when a graph was compiled for them, and whether they still are (A02).

PyTorch counts writes through operators. It does not count those through `.data` or NumPy, nor any to tensors made under
`inference_mode`: these are seen in the bytes themselves. Small parameters are compared whole, which says all; of large
ones the count and a fixed number of blocks, so that a look costs a few microseconds, whatever the size of the model.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from ctypes import Array, c_char
from hashlib import blake2b
from operator import attrgetter, itemgetter
from typing import Any, Literal

import torch

Look = Literal["sampled", "full", "frozen"]

WHOLE = 16 << 10
"""Bytes of a graph's parameters that are compared whole, the smallest parameters first."""

BLOCK = 64
"""Bytes of a block: a line of most caches."""

BLOCKS = 1024
"""Blocks that are compared of all larger parameters together, within the limits for one."""

FEWEST, MOST = 4, 16
"""Blocks of one parameter, the first and the last one of it among them."""

_Bytes = Array[c_char]


class Parameters:
    """The memory of the parameters of one module, by their positions among the arguments: it belongs to the tensors,
    and is not held here. PyTorch swaps no tensors that others refer to weakly, so that their memory is referred to."""

    def __init__(self, tensors: Mapping[int, torch.Tensor], look: Look) -> None:
        self._chosen = chosen(tuple(tensors))
        self.pointers = pointers(tensors.values())
        self._frozen = look == "frozen"
        self._digested = look == "full"
        spans = [(pointer, _span(each)) for pointer, each in zip(self.pointers, tensors.values(), strict=True)]
        large = {*spans} if self._frozen else set[tuple[int, int]]() if self._digested else _large(spans)
        self._seen = [] if self._frozen else list(_blocks(spans, large))
        partly = {n: each for (n, each), span in zip(tensors.items(), spans, strict=True) if span in large}
        counted = {n: each for n, each in partly.items() if not each.is_inference()}
        self._chosen_counted = chosen(tuple(counted))
        self._versions = list(map(_version, counted.values()))
        self._content = self._digest() if self._digested else b"".join(self._seen)

    def are_still(self, args: Sequence[Any]) -> bool:
        """Whether these arguments are the parameters, with the values that they had. Their shapes, strides and types
        Dynamo looks at."""
        if tuple(map(_pointer, self._chosen(args))) != self.pointers:
            return False  # before memory is read that may be gone
        if self._frozen:
            return True
        if self._versions and list(map(_version, self._chosen_counted(args))) != self._versions:
            return False
        return (self._digest() if self._digested else b"".join(self._seen)) == self._content

    def _digest(self) -> bytes:
        digest = blake2b(digest_size=16)
        for each in self._seen:
            digest.update(each)
        return digest.digest()


def pointers(tensors: Iterable[torch.Tensor]) -> tuple[int, ...]:
    """Where tensors lie."""
    return tuple(map(_pointer, tensors))


def when_gone(tensors: Iterable[torch.Tensor], function: Callable[[], object]) -> list[weakref.ref[Any]]:
    """References that call a function once the memory of a tensor is gone; nobody calls it when they are gone first."""
    return [weakref.ref(tensor.untyped_storage(), lambda _: function()) for tensor in tensors]


def chosen(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Takes the values at these positions."""
    if len(positions) < 2:
        first = positions[0] if positions else 0
        return itemgetter(slice(first, first + len(positions)))
    return itemgetter(*positions)


def _span(tensor: torch.Tensor) -> int:
    """Bytes from the first element of a tensor to the end of its last one."""
    if tensor.numel() == 0:
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    size: int = tensor.element_size() * (1 + sum((extent - 1) * stride for extent, stride in steps))
    return size


def _large(spans: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The parameters that are not compared whole, whose writes are counted, too."""
    left, large = WHOLE, set[tuple[int, int]]()
    for address, size in sorted(spans, key=itemgetter(1)):
        if size > left:
            large.add((address, size))
        else:
            left -= size
    return large


def _blocks(spans: Sequence[tuple[int, int]], large: Collection[tuple[int, int]]) -> Iterator[_Bytes]:
    """Small parameters, and blocks at equal distances of the large ones."""
    count = max(FEWEST, min(MOST, BLOCKS // max(1, len(large))))
    for address, size in sorted(spans, key=itemgetter(1)):
        if (address, size) not in large or size <= count * BLOCK:
            if size:
                yield _bytes_at(address, size)
            continue
        for n in range(count):
            yield _bytes_at(address + n * (size - BLOCK) // (count - 1), BLOCK)


def _bytes_at(address: int, size: int) -> _Bytes:
    return (c_char * size).from_address(address)


_pointer = torch.Tensor.data_ptr
_version = attrgetter("_version")
