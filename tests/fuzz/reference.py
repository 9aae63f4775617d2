"""The judge: a model evaluated node by node with onnxruntime, beside copies that are disturbed by rounding errors.

The disturbed copies say how far correct results may lie apart at every element, however badly conditioned the model
is.  Nodes whose element type onnxruntime lacks are evaluated in a wider type and narrowed again, or by onnx itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
EPSILON = {
    np.dtype(np.float64): 2.0**-52,
    np.dtype(np.float32): 2.0**-23,
    np.dtype(np.float16): 2.0**-10,
    BF16: 2.0**-7,
}
"""A unit in the last place of 1."""

_WIDER = {
    np.dtype(np.float16): (np.float32,),
    BF16: (np.float32, np.float64),
    np.dtype(np.int8): (np.int32, np.int64),
    np.dtype(np.uint8): (np.int32, np.int64),
    np.dtype(np.int16): (np.int32, np.int64),
    np.dtype(np.uint16): (np.int32, np.int64),
    np.dtype(np.int32): (np.int64,),
    np.dtype(np.uint32): (np.int64,),
    np.dtype(np.bool_): (np.int32, np.float32),
}

COPIES = 4
"""The undisturbed evaluation and three disturbed ones."""


def words(text: str) -> tuple[str, ...]:
    """Names that stand in one text."""
    return tuple(text.split())


EXACT = frozenset(
    words(
        """
    Identity Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Slice Split Pad Gather GatherElements
    GatherND Scatter ScatterElements ScatterND DepthToSpace SpaceToDepth Trilu Where Max Min Relu Abs Neg Clip
    Floor Ceil Round Sign ReduceMax ReduceMin MaxPool GlobalMaxPool TopK Constant ConstantOfShape EyeLike OneHot
    Range Shape Size Not And Or Xor Compress ReverseSequence Dropout IsNaN IsInf ArgMax ArgMin Equal Greater Less
    GreaterOrEqual LessOrEqual Hardmax NonZero Unique
    """
    )
)
"""Operators that round nothing."""

_BY_ONNX = frozenset(words("MeanVarianceNormalization"))
"""Operators that onnxruntime computes without a term of ONNX's definition: 0 / 0 for 0 / (0 + 1e-9)."""

_OF_NOTHING = frozenset(words("Gemm MatMul"))
"""Operators that onnxruntime gets wrong where a sum has no terms: without `beta`, or as memory was."""

_RECURRENT = frozenset(words("RNN GRU LSTM"))

_BOUNDED = frozenset(words("Sigmoid Tanh Erf Gelu Mish"))
"""Operators whose error is small beside 1, not beside the result, in onnxruntime."""

_SUMS = frozenset(
    words(
        """
        MatMul Gemm Einsum Conv ConvTranspose ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum
        ReduceLogSumExp CumSum AveragePool GlobalAveragePool LpPool GlobalLpPool
        """
    )
)
"""Operators that add up many terms."""

_NORMS = frozenset(
    words(
        """
        LayerNormalization InstanceNormalization GroupNormalization MeanVarianceNormalization LpNormalization
        RMSNormalization Softmax LogSoftmax
        """
    )
)
"""Operators whose every result hangs on sums over many elements."""

_ROUGH = frozenset(words("Erf HardSwish Gelu LRN GlobalMaxPool GroupNormalization RMSNormalization"))
"""Operators that no judge computes in f64 with constants of f64."""


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in EPSILON


class NoReference(Exception):
    """No judge computes this node."""


@dataclass(frozen=True)
class Kernel:
    """A node with its operand types, ready to be evaluated."""

    session: ort.InferenceSession | ReferenceEvaluator
    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    results: tuple[np.dtype[Any], ...]

    def __call__(self, operands: Mapping[str, Array]) -> list[Array]:
        feeds = {n: operands[n].astype(t, copy=False) for n, t in zip(self.names, self.types, strict=True)}
        with np.errstate(all="ignore"):
            made = self.session.run(None, feeds)
            return [np.asarray(y).astype(t, copy=False) for y, t in zip(made, self.results, strict=True)]


def kernel_of(node: NodeProto, operands: Mapping[str, Array], opset: int) -> Kernel:
    """Prepare a node for operands of these types and shapes. Raises NoReference."""
    names = tuple(dict.fromkeys(name for name in node.input if name))
    if node.op_type in _RECURRENT and operands[names[0]].size == 0:
        raise NoReference("onnxruntime ends the process at a recurrence over nothing")
    types = tuple(operands[name].dtype for name in names)
    results = result_types(node, dict(zip(names, types, strict=True)), opset)
    if np.dtype(np.float64) in types and node.op_type in _ROUGH:
        raise NoReference("f64 is computed with constants of f32")
    problem = ""
    evaluated = BF16 not in types and opset >= 13  # whose meaning of axes onnx's evaluator keeps
    of_nothing = node.op_type in _OF_NOTHING and any(operands[name].size == 0 for name in names)
    if of_nothing and not evaluated:
        raise NoReference("onnxruntime leaves out what has no terms")
    by_onnx = of_nothing or node.op_type in _BY_ONNX
    for wide in () if by_onnx and evaluated else _widenings(types):
        if node.op_type == "CastLike":  # what decides the result's type is no operand to widen, but for bf16
            wide = {t: w for t, w in wide.items() if t == BF16 or t != types[-1]}
        try:
            session = _session(_widened(node), names, [wide.get(t, t) for t in types], opset)
        except Exception as error:  # onnxruntime's own classes share no base
            problem = problem or str(error)
            continue
        return Kernel(session, names, tuple(wide.get(t, t) for t in types), results)
    if not evaluated:
        raise NoReference(problem)
    try:
        return Kernel(ReferenceEvaluator(_model(node, names, types, opset)), names, types, results)
    except Exception as error:
        raise NoReference(str(error)) from None


def _widenings(types: Sequence[np.dtype[Any]]) -> Iterator[dict[np.dtype[Any], np.dtype[Any]]]:
    if BF16 not in types:
        yield {}
    for step in range(2):
        yield {t: np.dtype(_WIDER[t][min(step, len(_WIDER[t]) - 1)]) for t in types if t in _WIDER}


def _widened(node: NodeProto) -> NodeProto:
    """The node with a bf16 named in an attribute widened as well."""
    copy = NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == TensorProto.BFLOAT16:
            attribute.i = TensorProto.FLOAT
    return copy


def _session(node: NodeProto, names: Sequence[str], types: Sequence[np.dtype[Any]], opset: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = _model(node, names, types, opset).SerializeToString()
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _model(node: NodeProto, names: Sequence[str], types: Sequence[np.dtype[Any]], opset: int) -> onnx.ModelProto:
    """A model of one node whose inputs have any shape."""
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(t), None)
        for n, t in zip(names, types, strict=True)
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "g", infos, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def result_types(node: NodeProto, types: Mapping[str, np.dtype[Any]], opset: int) -> tuple[np.dtype[Any], ...]:
    """The element types of a node's outputs as ONNX says. Raises NoReference for operands that it forbids."""
    model = _model(node, list(types), list(types.values()), opset)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=False)
    except onnx.shape_inference.InferenceError as error:
        raise NoReference(str(error)) from None
    numbers = [info.type.tensor_type.elem_type for info in inferred.graph.output]
    # Functions without inference have the type of their first operand.
    return tuple(helper.tensor_dtype_to_np_dtype(n) if n else next(iter(types.values())) for n in numbers)


class Trace:
    """Every tensor of a model on its inputs: the value, and the values that disturbed evaluations give."""

    def __init__(self, feeds: Mapping[str, Array], opset: int) -> None:
        self.opset = opset
        self.copies: dict[str, list[Array]] = {name: [value] * COPIES for name, value in feeds.items()}
        self.foreign = False
        """Whether onnxruntime could not evaluate the last node in its own types."""
        self._rng = np.random.default_rng(0)

    def __getitem__(self, name: str) -> Array:
        return self.copies[name][0]

    def run(self, node: NodeProto) -> list[str]:
        """Evaluate a node. Raises NoReference."""
        operands = {name: self[name] for name in node.input if name}
        kernel = kernel_of(node, operands, self.opset)
        widened = (operands[n].dtype != t for n, t in zip(kernel.names, kernel.types, strict=True))
        self.foreign = isinstance(kernel.session, ReferenceEvaluator) or any(widened)
        names = [name for name in node.output if name]
        combines = any(a.name == "reduction" and a.s != b"none" for a in node.attribute)
        exact = (node.op_type in EXACT and not combines) or (node.op_type == "Cast" and kernel.types[0].kind != "f")
        try:
            made = [kernel(operands)]
            for copy in range(1, COPIES):
                given = {name: self.copies[name][copy] for name in operands}
                if exact:
                    same = all(given[n] is operands[n] for n in operands)
                    made.append(made[0] if same else kernel(given))
                else:
                    found = kernel({n: self._disturbed(x) for n, x in given.items()})
                    made.append([self._disturbed(y, _floor(node, given, y)) for y in found])
        except Exception as error:
            raise NoReference(str(error)) from None
        for position, name in enumerate(names):
            self.copies[name] = [outputs[position] for outputs in made]
        return names

    def _disturbed(self, x: Array, floor: float = 0.0) -> Array:
        """Every element moved by up to two units in its last place or in that of `floor`; zeros stay zeros."""
        if not is_float(x.dtype):
            return x
        with np.errstate(all="ignore"):
            noise = self._rng.uniform(-2.0, 2.0, x.shape) * EPSILON[x.dtype]
            wide = x.astype(np.float64)
            moved = wide + np.maximum(np.abs(wide), floor) * noise
            return np.asarray(np.where(np.isfinite(wide) & (wide != 0), moved, wide).astype(x.dtype))

    def unstable(self, name: str) -> Array:
        """Where disturbed copies disagree about whole numbers, truth or being finite: nothing can be said there."""
        first, *others = self.copies[name]
        if not is_float(first.dtype):
            return np.logical_or.reduce([x != first for x in others])
        kinds = [_kind_of(x) for x in others]
        return np.logical_or.reduce([kind != _kind_of(first) for kind in kinds])

    def slack(self, name: str) -> Array:
        """How far from the value a correct result may lie, for every element of a float tensor."""
        first, *others = self.copies[name]
        with np.errstate(all="ignore"):
            wide = first.astype(np.float64)
            off = np.max([np.abs(x.astype(np.float64) - wide) for x in others], axis=0, initial=0.0)
            off = np.where(np.isfinite(off), off, 0.0)
            return np.asarray(10.0 * off + off.max(initial=0.0) + 4.0 * EPSILON[first.dtype] * np.abs(wide))

    def difference(self, name: str, found: Array) -> str:
        """What is wrong with an output; nothing when it is right."""
        expected = self[name]
        if found.shape != expected.shape:
            return f"{name}: shape {list(found.shape)} instead of {list(expected.shape)}"
        if found.dtype != expected.dtype:
            return f"{name}: type {found.dtype} instead of {expected.dtype}"
        if is_float(expected.dtype):
            a, b = found.astype(np.float64), expected.astype(np.float64)
            with np.errstate(invalid="ignore"):
                close = np.abs(a - b) <= self.slack(name)
            right = np.where(np.isfinite(b), close, (a == b) | (np.isnan(a) & np.isnan(b)))
        else:
            right = found == expected
        wrong = ~right & ~self.unstable(name)
        if not wrong.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        off = f"{found[at]!r} instead of {expected[at]!r}"
        return f"{name}: {off} at {list(at)}, {int(wrong.sum())} of {wrong.size} elements"


def _floor(node: NodeProto, operands: Mapping[str, Array], result: Array) -> float:
    """The least number in whose last places a result strays: of sums, the largest partial sums, root by root."""
    if node.op_type in _BOUNDED:
        return 1.0
    if node.op_type not in _SUMS | _NORMS or not result.size or result.dtype.itemsize < 4 or result.dtype.kind != "f":
        return 0.0  # f16 and bf16 are added up in f32
    sizes = [max(1, x.size) for x in list(operands.values())[:2] if is_float(x.dtype)]
    terms = (np.prod(sizes, dtype=np.float64) / result.size) ** (1 / len(sizes))
    terms = result.size if node.op_type in _NORMS else terms
    wide = np.abs(result.astype(np.float64))
    return float(np.sqrt(max(1.0, terms)) * wide.max(initial=0.0, where=np.isfinite(wide)))


def _kind_of(x: Array) -> Array:
    """0 for finite numbers, 1 for NaN, 2 and 3 for the infinities."""
    wide = x.astype(np.float64)
    return np.where(np.isnan(wide), 1, np.where(np.isposinf(wide), 2, np.where(np.isneginf(wide), 3, 0)))


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Trace:
    """Every tensor of a model. Raises NoReference."""
    opset = next(o.version for o in model.opset_import if not o.domain)
    given = dict(feeds) | {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    trace = Trace({name: np.asarray(array) for name, array in given.items()}, opset)
    for node in model.graph.node:
        trace.run(node)
    return trace
