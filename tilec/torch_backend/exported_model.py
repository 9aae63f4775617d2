"""A program of `torch.export`, compiled: called like the program, with tensors in and out (A02)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree

from tilec.api import InferenceSession, SessionOptions
from tilec.errors import UsageError
from tilec.torch_backend.arrays import array_of, tensor_of
from tilec.torch_backend.exported_program import Exported, constant_results, translated_program, user_outputs
from tilec.torch_backend.memory_order import in_order
from tilec.torch_backend.model_file import write_model


class ExportedModel:
    """Takes the arguments of the program that it was compiled from, and returns results of the same structure.

    Buffers that the program writes are the model's own: they start with the program's values and change from call to
    call. Arguments that the program writes are written. Results are contiguous. Calls of a program that writes nothing
    may run on any number of threads.
    """

    def __init__(self, exported: Exported, session: InferenceSession) -> None:
        self._exported = exported
        self._session = session
        program = exported.program
        specs = program.graph_signature.input_specs
        self._users = [place for place, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
        self._fixed = {
            number: (spec.arg.name, spec.arg.value)
            for number, spec in enumerate(specs[place] for place in self._users)
            if isinstance(spec.arg, ConstantArgument)
        }
        self._state = exported.state()
        self._constants = constant_results(program)
        self._outputs = user_outputs(program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once. Raises UsageError for arguments of another structure, type or size than the program takes, and for
        an index outside of its dimension."""
        flat = self._flat(args, kwargs)
        values = {**self._state, **dict(zip(self._users, flat, strict=True))}
        feeds = {}
        for port in self._exported.translated.inputs:
            tensor = values[port.position]
            if not isinstance(tensor, torch.Tensor):
                raise UsageError(f"{port.name} is a tensor in the program, here it is a {type(tensor).__name__}")
            if tensor.device.type != "cpu":
                raise UsageError(f"{port.name} is on {tensor.device}", hint="Move it to the CPU.")
            feeds[port.name] = array_of(tensor)
        made = [tensor_of(array) for array in self._session.run(None, feeds)]
        results = self._exported.check.passed(self._exported.translated.placed(made))
        with torch.no_grad():
            for position, place in self._exported.written.items():
                values[place].copy_(results[position])
            results = self._in_order(results, values)
        leaves = [self._constants.get(position, results[position]) for position in self._outputs]
        spec = self._exported.program.call_spec.out_spec
        return _pytree.tree_unflatten(leaves, spec) if spec is not None else leaves

    def _in_order(self, results: Sequence[Any], values: Mapping[int, Any]) -> list[Any]:
        """The results, with the strides that those of the program have."""
        orders = self._exported.orders
        symbols = {symbol: values[place].shape[dim] for symbol, (place, dim) in orders.symbols.items()}
        return [
            in_order(each, orders.outputs[position], symbols) if position in orders.outputs else each
            for position, each in enumerate(results)
        ]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the ONNX model that the program was translated to, which `tilec compile` takes."""
        return write_model(self._exported.model, Path(path))

    @property
    def session(self) -> InferenceSession:
        """The session that runs it, on arrays: its inputs and outputs have the names of the program's signature."""
        return self._session

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of the arguments."""
        wanted = self._exported.program.call_spec.in_spec
        if wanted is None:
            return [*args, *kwargs.values()]
        names = wanted.child(1).context
        if sorted(names) == sorted(kwargs):
            kwargs = {name: kwargs[name] for name in names}
        flat: list[Any]
        flat, found = _pytree.tree_flatten((args, kwargs))
        if found != wanted:
            raise UsageError(
                f"the program takes other arguments: {_signature(wanted)}, not {_signature(found)}",
                hint="Call it with arguments of the structure that it was exported with.",
            )
        for number, (name, value) in self._fixed.items():
            if flat[number] != value:
                raise UsageError(
                    f"{name} is {value!r} in the exported program, here it is {flat[number]!r}",
                    hint="Export the model again with this value.",
                )
        return flat


def from_exported(
    program: ExportedProgram,
    *,
    device: str = "host",
    recipe: str | None = None,
    threads: int | None = None,
    specialize: Literal["off", "likely"] | None = None,
    cache: str | None = None,
) -> ExportedModel:
    """Compile a program of `torch.export`, see `tilec.from_exported`."""
    if not isinstance(program, ExportedProgram):
        raise UsageError(
            f"an exported program is wanted, this is a {type(program).__name__}",
            hint="`torch.export.export(model, arguments)` makes one, `torch.export.load(FILE)` reads one.",
        )
    exported = translated_program(program, "program", checked=True)
    options = SessionOptions()
    options.intra_op_num_threads = threads or torch.get_num_threads()
    model = exported.translated.model.SerializeToString(deterministic=True)
    session = InferenceSession(
        model,
        options,
        device=device,
        recipe=recipe,
        specialize=specialize,
        cache=cache,
        sizes=exported.ranges,
        while_compiling="wait",
    )
    return ExportedModel(exported, session)


def _signature(spec: _pytree.TreeSpec) -> str:
    """Arguments as text, a star for each value."""
    positions, named = (spec.child(number) for number in (0, 1))
    parts = [_shown(positions.child(number)) for number in range(positions.num_children)]
    parts += [f"{name}={_shown(named.child(number))}" for number, name in enumerate(named.context)]
    return f"({', '.join(parts)})"


def _shown(spec: _pytree.TreeSpec) -> str:
    tree = _pytree.tree_unflatten(["*"] * spec.num_leaves, spec)
    return str(tree).replace("'*'", "*")
