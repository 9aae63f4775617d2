"""A compiled graph at one set of shapes: a call checks these, allocates results, and runs on addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import memmove
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
"""Bytes up to which a result is copied into an argument by one call of C, which takes half of what PyTorch's takes and
lets no other thread of Python run."""


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
    writes = list(zip(targets, [n for n in reversed(copied) if n is not None], strict=True))
    kept = {n for target, n in writes if n not in returned and _moves(inputs[target], outputs[n])}
    lines = [
        "def run(inputs):",
        f" {''.join(f'{name}, ' for name in given)}= inputs" if given else " pass",
        *(f" require({name}, {shape!r}, {strides!r})" for name, (shape, strides, _) in zip(given, inputs, strict=True)),
        *(_made(n, n in kept) for n in range(len(outputs))),
        f" job(({''.join(f'a{name} := address({name}), ' for name in given)}{''.join(f'a{name}, ' for name in made)}))",
        *(_copy(target, inputs[target], n, outputs[n]) for target, n in writes),
        *(f" kept{n}.append((o{n}, ao{n}))" for n in kept),
        f" return [{', '.join('None' if n is None else made[n] for n in returned)}]",
    ]
    names = {"require": _require, "empty": _empty, "address": _address, "job": job, "move": memmove, "copy": _copy_to}
    names |= {f"w{n}": each for n, each in enumerate(outputs)} | {f"kept{n}": [] for n in kept}
    exec("\n".join(lines), names)
    run: Run = names["run"]
    return run


def _made(output: int, is_kept: bool) -> str:
    """The lines that allocate an output, with its address; one that nobody else gets to see is kept for later calls,
    one for each thread that calls at that time."""
    made = f"o{output} = empty(*w{output}); ao{output} = address(o{output})"
    if not is_kept:
        return f" {made}"
    return f" try: o{output}, ao{output} = kept{output}.pop()\n except IndexError: {made}"


def _copy(target: int, wanted: Allocated, output: int, made: Allocated) -> str:
    """The line that copies an output into an input."""
    if _moves(wanted, made):
        return f" move(ai{target}, ao{output}, {_size(made)})"
    return f" copy(i{target}, o{output})"


def _moves(wanted: Allocated, made: Allocated) -> bool:
    """Whether one call of C copies an output into an input."""
    shape, strides, _ = made
    is_dense = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True)) == prod(shape)
    return made == wanted and is_dense and _size(made) <= MOVED


def _size(tensor: Allocated) -> int:
    shape, _, dtype = tensor
    size: int = prod(shape) * dtype.itemsize
    return size
