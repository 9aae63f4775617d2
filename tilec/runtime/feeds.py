"""Checks what the caller passes: names, types and shapes; any NumPy layout becomes a C-contiguous array."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.manifest import DefaultSpec, IndexSpec, OpaqueSpec, PortSpec, TensorSpec
from tilec.errors import UsageError, did_you_mean
from tilec.ir.types import numpy_dtype
from tilec.runtime.device_array import DeviceArray, device_array
from tilec.runtime.memory import address, aligned_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


MakeArray = Callable[[tuple[int, ...], "np.dtype[Any]"], "NDArray[Any]"]
"""Makes an uninitialised array of a shape and a type."""

NO_STATES: Mapping[int, int] = MappingProxyType({})

_COPY = "Copy it to host memory first."


def gather_inputs(specs: Iterable[PortSpec], feeds: "Mapping[str, Any]", on_device: bool = False) -> list[Any]:
    """The feeds in the order of `specs`, as aligned C-contiguous arrays in native byte order; opaque ones as they are.

    An array that has this form already is passed on as it is, another one is copied. Arrays that lie on a GPU stay
    there where the code that reads them runs `on_device`. Raises UsageError for a missing or unknown name, another
    element type or another shape, and for an array of a GPU that code cannot read.
    """
    arrays: list[Any] = []
    for spec in specs:
        if spec.name not in feeds:
            raise missing_input(spec)
        if isinstance(spec, OpaqueSpec):
            arrays.append(feeds[spec.name])
            continue
        given = feeds[spec.name]
        remote = None if isinstance(given, np.ndarray) else device_array(given)
        if remote is not None:
            if not on_device:
                raise UsageError(f"input {spec.name!r} lies on a GPU, where this model does not read it", hint=_COPY)
            _check(spec, remote, "input")
            arrays.append(remote)
            continue
        array = np.asarray(given)
        _check(spec, array, "input")
        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
            array = np.array(array, dtype=numpy_dtype(spec.ttype), order="C", copy=True)
        arrays.append(array)
    if len(arrays) != len(feeds):
        _refuse_unknown("input", feeds, specs)
    return arrays


def without_defaults(defaults: Sequence[DefaultSpec], feeds: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """The feeds without those of inputs whose value was compiled in. Raises UsageError for another value of one."""
    given = {each.name: each for each in defaults if each.name in feeds}
    for name, default in given.items():
        spec = TensorSpec(name, default.ttype, default.shape)
        array = np.asarray(feeds[name])
        _check(spec, array, "input")
        if sha256(np.asarray(array, numpy_dtype(default.ttype), order="C").tobytes()).hexdigest() != default.sha256:
            what = "with another value" if default.sha256 else "as a weight"
            hint = "tilec.InferenceSession compiles for other values; or remove its initializer and compile again."
            raise UsageError(f"input {name!r} was compiled in {what}", hint=hint)
    return {name: value for name, value in feeds.items() if name not in given} if given else feeds


def missing_input(spec: PortSpec) -> UsageError:
    """The error of feeds without an input."""
    hint = f"It is {describe(spec)}."
    if isinstance(spec, TensorSpec) and spec.ttype == "bool" and spec.shape == (spec.name,):
        # `state: in-place` put it there (ir.graph.Room).
        hint = f"Its length is the number of rows in caches that have room: numpy.zeros({spec.name}, bool)."
    return UsageError(f"input {spec.name!r} is missing", hint=hint)


def check_indices(ranges: Iterable[IndexSpec], specs: Sequence[PortSpec], inputs: Sequence[Any]) -> None:
    """Raise UsageError for an input with an element that its node cannot take as an index."""
    for each in ranges:
        array, extent = inputs[each.input], int(each.extent)
        least = -extent if each.wraps else 0
        if each.column is not None:
            dimension, at = each.column
            array = array[(slice(None),) * dimension + (slice(at, at + 1),)]
        if not array.size or (least <= int(array.min()) and int(array.max()) < extent):
            continue
        outside = (array < least) | (array >= extent)
        if each.besides is not None:
            outside &= array != each.besides
        if outside.any():
            place = [int(i) for i in np.argwhere(outside)[0]]
            index = array[tuple(place)]
            if each.column is not None:
                place[each.column[0]] = each.column[1]
            raise UsageError(
                f"input {specs[each.input].name!r} has the index {index} at {place}, "
                f"outside of {least} to {extent - 1}",
                hint=f"Node {each.node!r} takes it as an index: pass {least} to {extent - 1} there.",
            )


def gather_outputs(
    specs: Iterable[PortSpec],
    out: "Mapping[str, Any]",
    inputs: list[Any],
    taken: Collection[int] = (),
    on_device: bool = False,
    make: MakeArray = aligned_array,
    states: Mapping[int, int] = NO_STATES,
) -> "list[Any]":
    """Arrays to compute into, in the order of `specs`: the caller's where they can be used directly, else those that
    `make` makes.

    Outputs of the numbers in `taken` are computed by calls and have none. Code that runs `on_device` writes to arrays
    of its GPU, too. `states` maps outputs to the inputs whose memory they may have.

    A caller's array that is not C-contiguous, or may overlap an input or another output, is replaced by a
    fresh one to be copied from afterwards. Raises UsageError for an unknown name, another element type or
    shape, or an array that cannot be written.
    """
    arrays: list[Any] = []
    used = 0
    for number, spec in enumerate(specs):
        array = out.get(spec.name)
        used += array is not None
        remote = device_array(array) if on_device and array is not None and not isinstance(array, np.ndarray) else None
        if remote is not None and isinstance(spec, TensorSpec) and number not in taken:
            _check(spec, remote, "output")
            arrays.append(remote)
            continue
        if number in taken or isinstance(spec, OpaqueSpec):
            arrays.append(None)
            continue
        state = inputs[states[number]] if number in states else None
        others = [each for each in inputs if each is not state or not same_memory(each, array)]
        arrays.append(output_array(spec, array, (*others, *arrays), make))
    if used != len(out):
        _refuse_unknown("output", out, specs)
    return arrays


def same_memory(one: Any, other: Any) -> bool:
    """Whether two arrays of one shape and type are one memory."""
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and address(one) == address(other)


def output_array(
    spec: TensorSpec, array: "NDArray[Any] | None", others: Iterable[Any], make: MakeArray = aligned_array
) -> "NDArray[Any]":
    """The array to compute an output into: the caller's where it can be used directly, else one of `make`. `others` are
    in use. Raises UsageError for another element type or shape, or an array that cannot be written."""
    if array is not None:
        if not isinstance(array, np.ndarray):
            raise UsageError(f"out[{spec.name!r}] is no NumPy array", hint="Pass one, or leave it out.")
        _check(spec, array, "output")
        if not array.flags.writeable:
            raise UsageError(f"out[{spec.name!r}] is read-only", hint="Pass an array of its own, or leave it out.")
        usable = array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative
        blocks = [other for other in others if isinstance(other, np.ndarray)]
        if not usable or any(np.may_share_memory(array, other) for other in blocks):
            array = None
    return make(spec.bound_shape, numpy_dtype(spec.ttype)) if array is None else array


def copy_result(spec: PortSpec, result: Any, target: "NDArray[Any]") -> None:
    """Copy an output into the caller's array. Raises UsageError when it does not fit there."""
    if not isinstance(result, np.ndarray) or (result.shape, result.dtype) != (
        target.shape,
        target.dtype.newbyteorder("="),
    ):
        actual = f"{result.dtype.name}{list(result.shape)}" if isinstance(result, np.ndarray) else type(result).__name__
        raise UsageError(
            f"output {spec.name!r} is {actual}, out[{spec.name!r}] is {target.dtype.name}{list(target.shape)}",
            hint="Leave it out where its shape depends on data.",
        )
    np.copyto(target, result)


def describe(spec: PortSpec) -> str:
    """The tensor as NumPy would say it, e.g. float32[1, 3, 224, 224] or float32[batch, 64]."""
    if isinstance(spec, OpaqueSpec):
        return spec.type or "a value of unknown type"
    return f"{numpy_dtype(spec.ttype).name}[{', '.join(map(str, spec.shape))}]"


def _check(spec: TensorSpec, array: "NDArray[Any] | DeviceArray", role: str) -> None:
    expected = numpy_dtype(spec.ttype)
    if array.dtype.newbyteorder("=") != expected:
        raise UsageError(
            f"{role} {spec.name!r} has element type {array.dtype.name}, the model has {expected.name}",
            hint=f"Pass array.astype({expected.name!r}).",
        )
    if array.shape != spec.shape:
        raise UsageError(
            f"{role} {spec.name!r} has shape {list(array.shape)}, the model has {list(spec.shape)}",
            hint="It runs at other sizes only where it was compiled with these left open."
            if _same_rank(spec, array, role)
            else None,
        )


def _same_rank(spec: TensorSpec, array: "NDArray[Any] | DeviceArray", role: str) -> bool:
    """Whether sizes of an input alone are others."""
    return role == "input" and len(array.shape) == len(spec.shape)


def _refuse_unknown(role: str, given: Mapping[str, Any], specs: Iterable[PortSpec]) -> None:
    names = [spec.name for spec in specs]
    for name, value in given.items():
        if name not in names and value is not None:
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"The {role}s are {', '.join(map(repr, names)) or 'none'}."
            raise UsageError(f"the model has no {role} {name!r}", hint=hint)
