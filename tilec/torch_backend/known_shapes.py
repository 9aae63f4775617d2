"""A compiled graph at one set of shapes: a call checks these, allocates results, and runs on addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import torch

from tilec.runtime.addressed import AddressedCall, RunOn
from tilec.torch_backend.arrays import array_of
from tilec.torch_backend.index_checks import Check
from tilec.torch_backend.layout import Allocated, Layout
from tilec.torch_backend.memory_order import with_strides

_address = torch.Tensor.data_ptr
_require = torch._C._dynamo.guards.assert_size_stride
_empty = torch._C._dynamo.guards._empty_strided_cpu
"""What the code that inductor generates calls, too: checks shape and strides; allocates a tensor on the CPU, whatever
device PyTorch is set to. Both take less than a tenth of what a method of a tensor takes."""

Run = Callable[[Sequence[torch.Tensor]], list[Any]]
"""The results for inputs. Raises AssertionError for inputs of other shapes or strides, UsageError for one that holds no
indices where it should."""


class KnownShapes:
    """Runs `call`, whose tensors are the inputs and outputs of the ports in this order, for tensors like `inputs`."""

    def __init__(self, call: AddressedCall, layout: Layout, inputs: Sequence[torch.Tensor], check: Check) -> None:
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
        if not (copies or call.indexed or copied or layout.has_sizes):
            self.run = _plainly(job, list(zip(shapes, strides, strict=True)), outputs, layout.ports.outputs_at)
            if check.is_there:
                plainly = self.run
                self.run = lambda inputs: passed(plainly(inputs))


def _plainly(
    job: RunOn, inputs: Sequence[tuple[Any, Any]], outputs: Sequence[Allocated], results: Sequence[int | None]
) -> Run:
    """What most graphs are, without a loop, as the Python that inductor writes: half of what a small model takes goes
    by around it."""
    given, made = [f"i{n}" for n in range(len(inputs))], [f"o{n}" for n in range(len(outputs))]
    lines = [
        "def run(inputs):",
        f" {''.join(f'{name}, ' for name in given)}= inputs" if given else " pass",
        *(f" require({name}, *{shape_and_strides!r})" for name, shape_and_strides in zip(given, inputs, strict=True)),
        *(f" {name} = empty(*w{n})" for n, name in enumerate(made)),
        f" job(({''.join(f'address({name}), ' for name in (*given, *made))}))",
        f" return [{', '.join('None' if n is None else made[n] for n in results)}]",
    ]
    names = {"require": _require, "empty": _empty, "address": _address, "job": job}
    names |= {f"w{n}": each for n, each in enumerate(outputs)}
    exec("\n".join(lines), names)
    run: Run = names["run"]
    return run
