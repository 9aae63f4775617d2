"""A compiled graph at one set of shapes: a call checks these, allocates results, and runs on addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_char
from itertools import starmap
from math import prod
from typing import Any

import torch

from tilec.runtime.addressed import AddressedCall, RunOn
from tilec.torch_backend.arrays import array_of
from tilec.torch_backend.index_checks import Check
from tilec.torch_backend.layout import Allocated, Layout
from tilec.torch_backend.memory_order import with_strides

_address, _copy_to = torch.Tensor.data_ptr, torch.Tensor.copy_
_require = torch._C._dynamo.guards.assert_size_stride
_empty = torch._C._dynamo.guards._empty_strided_cpu
"""What the code that inductor generates calls, too: checks shape and strides; allocates a tensor on the CPU, whatever
device PyTorch is set to. Both take less than a tenth of what a method of a tensor takes."""

Run = Callable[[Sequence[torch.Tensor]], list[Any]]
"""The results for inputs. Raises AssertionError for inputs of other shapes or strides, UsageError for one that holds no
indices where it should."""


MOVED = 1 << 15
"""Bytes up to which a result is copied into an argument as bytes, which takes a sixth of what PyTorch's copy takes and
lets no other thread of Python run."""

SEEN = 64
"""Addresses of an argument that is written whose bytes are kept at hand."""


class KnownShapes:
    """Runs `call`, whose tensors are the inputs and outputs of the ports in this order, for tensors like `inputs`. The
    last results are for the arguments that are `written`: those of most graphs are copied at the end of a run, else
    these arguments are `left`."""

    def __init__(
        self,
        call: AddressedCall,
        layout: Layout,
        inputs: Sequence[torch.Tensor],
        check: Check,
        written: tuple[int, ...],
    ) -> None:
        shapes = [tuple(tensor.shape) for tensor in inputs]
        strides = [tensor.stride() for tensor in inputs]
        copies = any(tensor.is_neg() or not tensor.is_contiguous() for tensor in layout.views(inputs))
        outputs, copied = layout.allocated(call.outputs, inputs)
        job, passed = call.run, check.passed

        def run(inputs: Sequence[torch.Tensor]) -> list[Any]:
            for tensor, shape, steps in zip(inputs, shapes, strides, strict=True):
                _require(tensor, shape, steps)
            if copies:
                inputs = [tensor.resolve_neg().contiguous() for tensor in layout.views(inputs)]
            if call.indexed:
                views = inputs if copies else layout.views(inputs)
                call.check([array_of(tensor) if n in call.indexed else None for n, tensor in enumerate(views)])
            made = list(starmap(_empty, outputs))
            job([*map(_address, inputs), *map(_address, made)])
            for number, wanted in copied:
                made[number] = with_strides(made[number], wanted)
            return passed(layout.ports.placed(made))

        self.run: Run = run
        self.left = written
        if not (copies or call.indexed or copied or layout.has_sizes):
            given = [(*each, tensor.dtype) for *each, tensor in zip(shapes, strides, inputs, strict=True)]
            targets = () if check.is_there else layout.ports.inputs_at(written)
            self.run = _plainly(job, given, outputs, layout.ports.outputs_at, targets)
            self.left = written[len(targets) :]
            if check.is_there:
                plainly = self.run
                self.run = lambda inputs: passed(plainly(inputs))


def _plainly(
    job: RunOn,
    inputs: Sequence[Allocated],
    outputs: Sequence[Allocated],
    results: Sequence[int | None],
    targets: Sequence[int],
) -> Run:
    """What most graphs are, without a loop, as the Python that inductor writes: half of what a small model takes goes
    by around it. The last results, from the last one on, are copied into the inputs that are `targets`."""
    given, made = [f"i{n}" for n in range(len(inputs))], [f"o{n}" for n in range(len(outputs))]
    returned, copied = results[: len(results) - len(targets)], results[len(results) - len(targets) :]
    writes = [
        (target, n, None if n in returned else _bytes_alike(inputs[target], outputs[n]))
        for target, n in zip(targets, [n for n in reversed(copied) if n is not None], strict=True)
    ]
    kept = {n: size for _, n, size in writes if size is not None}
    lines = [
        "def run(inputs):",
        f" {''.join(f'{name}, ' for name in given)}= inputs" if given else " pass",
        *(f" require({name}, {shape!r}, {strides!r})" for name, (shape, strides, _) in zip(given, inputs, strict=True)),
        *(_made(n, kept.get(n)) for n in range(len(outputs))),
        f" job(({''.join(f'a{name} := address({name}), ' for name in given)}{''.join(f'a{name}, ' for name in made)}))",
        *(_copied(*write) for write in writes),
        *(f" kept{n}.append((o{n}, ao{n}, b{n}))" for n in kept),
        f" return [{', '.join('None' if n is None else made[n] for n in returned)}]",
    ]
    names = {"require": _require, "empty": _empty, "address": _address, "job": job, "copy": _copy_to, "look": _Bytes}
    names |= {f"w{n}": each for n, each in enumerate(outputs)} | {f"kept{n}": [] for n in kept}
    names |= {f"t{target}": _Bytes(size) for target, _, size in writes if size is not None}
    exec("\n".join(lines), names)
    run: Run = names["run"]
    return run


def _made(output: int, size: int | None) -> str:
    """The lines that allocate an output, with its address; one of a `size` in bytes, which nobody else gets to see, is
    kept for later calls, one for each thread that calls at that time."""
    made = f"o{output} = empty(*w{output}); ao{output} = address(o{output})"
    if size is None:
        return f" {made}"
    looked_at = f"b{output} = look({size})[ao{output}]"
    return f" try: o{output}, ao{output}, b{output} = kept{output}.pop()\n except IndexError: {made}; {looked_at}"


def _copied(target: int, output: int, size: int | None) -> str:
    """The line that copies an output into an input; one of a `size` in bytes is copied as such."""
    return f" copy(i{target}, o{output})" if size is None else f" t{target}[ai{target}][:] = b{output}"


class _Bytes(dict[int, memoryview]):
    """So many bytes of memory by their address: those of tensors that are there."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __missing__(self, address: int) -> memoryview:
        if len(self) >= SEEN:
            self.clear()
        self[address] = made = memoryview((c_char * self._size).from_address(address)).cast("B")
        return made


def _bytes_alike(wanted: Allocated, made: Allocated) -> int | None:
    """The bytes of an output that lies in memory as an input does, where they are few and without gaps; else None."""
    shape, strides, dtype = made
    size: int = prod(shape) * dtype.itemsize
    is_dense = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True)) == prod(shape)
    return size if made == wanted and is_dense and size <= MOVED else None
