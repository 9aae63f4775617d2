"""Models and files that are written to do harm: to fill the memory, to run for ever, to read what is not theirs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.safety.protobuf import BYTES, Item, varint, write
from tests.safety.seeds import floats, ints, mlp, model, value

HUGE = (2**40, 2**62, 2**63 - 1)


def _one(
    op: str, inputs: Iterable[str], constants: Iterable[Any], shape: Iterable[Any] = (4,), **attributes: Any
) -> Any:
    """A model of one operator that reads `x` and constants."""
    node = helper.make_node(op, list(inputs), ["y"], name="it", **attributes)
    return model([node], [value("x", *shape)], [value("y")], list(constants))


def _float(name: str, *values: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def _scalar(name: str, number: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(number, np.int64), name)


def _twice(levels: int) -> onnx.ModelProto:
    """Functions of which each calls the next one twice: 2**levels nodes."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(levels):
        last = level == levels - 1
        op, domain = ("Relu", "") if last else (f"f{level + 1}", "own")
        nodes = [helper.make_node(op, [a], [b], domain=domain) for a, b in (("a", "b"), ("b", "c"))]
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["c"], nodes, opsets))
    return model([helper.make_node("f0", ["x"], ["y"], domain="own")], [value("x", 4)], [value("y", 4)], (), functions)


def _itself() -> onnx.ModelProto:
    """A function that calls itself."""
    found = _twice(1)
    for node in found.functions[0].node:
        node.op_type, node.domain = "f0", "own"
    return found


def _branches(depth: int) -> onnx.ModelProto:
    """`If` in `If`."""
    yes = numpy_helper.from_array(np.array(True), "yes")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["z0"])], "g", [], [value("z0", 4)])
    for level in range(1, depth):
        node = helper.make_node(
            "If", ["yes"], [f"z{level}"], then_branch=graph, else_branch=graph if level == 1 else None
        )
        graph = helper.make_graph([node], "g", [], [value(f"z{level}", 4)])
    node = helper.make_node("If", ["yes"], ["y"], then_branch=graph, else_branch=graph)
    return model([node], [value("x", 4)], [value("y", 4)], [yes])


def _chain(length: int) -> onnx.ModelProto:
    """A chain of operators, in the file the last first."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    return model(nodes[::-1], [value("x", 4)], [value("y", 4)])


def _doubling(op: str, times: int) -> onnx.ModelProto:
    """An operator with both inputs from the one before: an expression that doubles when it is inlined."""
    names = ["x", *(f"t{i}" for i in range(times - 1)), "y"]
    nodes = [helper.make_node(op, [a, a], [b]) for a, b in itertools.pairwise(names)]
    return model(nodes, [value("x", 4)], [value("y")])


def _concat(times: int) -> onnx.ModelProto:
    """A tensor that is joined to itself, again and again."""
    names = ["x", *(f"t{i}" for i in range(times - 1)), "y"]
    nodes = [helper.make_node("Concat", [a] * 8, [b], axis=0) for a, b in itertools.pairwise(names)]
    return model(nodes, [value("x", 4)], [value("y")])


def _shapes(times: int) -> onnx.ModelProto:
    """Symbolic sizes that are multiplied with themselves."""
    names = ["shape", *(f"t{i}" for i in range(times))]
    nodes = [helper.make_node("Shape", ["x"], ["shape"])]
    nodes += [helper.make_node("Mul", [a, a], [b]) for a, b in itertools.pairwise(names)]
    nodes.append(helper.make_node("ConstantOfShape", [names[-1]], ["y"]))
    return model(nodes, [value("x", "batch", "sequence")], [value("y")])


def _loop(trips: int) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["s", "s"], ["t"])],
        "body",
        [value("i", kind=TensorProto.INT64), value("go", kind=TensorProto.BOOL), value("s", 4)],
        [value("on", kind=TensorProto.BOOL), value("t", 4)],
    )
    yes = numpy_helper.from_array(np.array(True), "yes")
    node = helper.make_node("Loop", ["trips", "yes", "x"], ["y"], body=body)
    return model([node], [value("x", 4)], [value("y", 4)], [_scalar("trips", trips), yes])


def _declared(*dims: int) -> onnx.ModelProto:
    """A weight that says it is larger than it is."""
    found = mlp()
    del found.graph.initializer[0].dims[:]
    found.graph.initializer[0].dims.extend(dims)
    return found


def _typed(*dims: int) -> onnx.ModelProto:
    """The same in a typed field."""
    found = _declared(*dims)
    found.graph.initializer[0].ClearField("raw_data")
    found.graph.initializer[0].float_data.extend([1.0, 2.0])
    return found


def _sparse() -> onnx.ModelProto:
    found = mlp()
    sparse = found.graph.sparse_initializer.add()
    sparse.values.CopyFrom(floats("w1", 1))
    sparse.indices.CopyFrom(ints("at", 2**62))
    sparse.dims.extend([2**62])
    del found.graph.initializer[0]
    return found


def _attribute(op: str, name: str, entry: Any, shape: Iterable[Any] = (1, 4, 8, 8), inputs: str = "x") -> Any:
    return _one(op, inputs.split(), [floats("w", 4, 4, 3, 3)], shape, **{name: entry})


def _outside(location: str) -> onnx.ModelProto:
    found = mlp()
    tensor = found.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return found


def _extent(offset: str, length: str) -> onnx.ModelProto:
    found = _outside("weights.bin")
    found.graph.initializer[0].external_data.add(key="offset", value=offset)
    found.graph.initializer[0].external_data.add(key="length", value=length)
    return found


def _nested_bytes(depth: int) -> bytes:
    """A message in a message in a message, where a graph should be."""
    data = b""
    for _ in range(depth):
        data = write([Item(5, BYTES, data)])
    return write([Item(7, BYTES, data)])


def _input(*shape: Any) -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [value("x", *shape)], [value("y")])


HOSTILE: dict[str, Callable[[], onnx.ModelProto | bytes]] = {
    **{f"ConstantOfShape-{n}": lambda n=n: _one("ConstantOfShape", ["n"], [ints("n", n)]) for n in (*HUGE, -1)},
    **{f"ConstantOfShape-{n}x{n}": lambda n=n: _one("ConstantOfShape", ["n"], [ints("n", n, n)]) for n in HUGE},
    **{f"Fill-{n}^9": lambda n=n: _one("ConstantOfShape", ["n"], [ints("n", *[n] * 9)]) for n in (99, 65536)},
    **{
        f"Range-{n}": lambda n=n: _one("Range", ["a", "b", "c"], [_scalar("a", 0), _scalar("b", n), _scalar("c", 1)])
        for n in HUGE
    },
    "Range-0": lambda: _one("Range", ["a", "b", "c"], [_scalar("a", 0), _scalar("b", 9), _scalar("c", 0)]),
    "Range-nan": lambda: _one(
        "Range", ["a", "b", "c"], [_float("a", 0.0), _float("b", np.nan), _float("c", 1e-30)]
    ),
    "Range-inf": lambda: _one(
        "Range",
        ["a", "b", "c"],
        [numpy_helper.from_array(np.array(v, np.float32), k) for k, v in zip("abc", (0, np.inf, 1), strict=True)],
    ),
    **{f"Tile-{n}": lambda n=n: _one("Tile", ["x", "n"], [ints("n", n)]) for n in (*HUGE, -1)},
    **{f"Expand-{n}": lambda n=n: _one("Expand", ["x", "n"], [ints("n", n, 4)]) for n in (*HUGE, -1)},
    **{f"Pad-{n}": lambda n=n: _one("Pad", ["x", "n"], [ints("n", n, n)]) for n in (*HUGE, -1, -(2**62))},
    **{f"Reshape-{n}": lambda n=n: _one("Reshape", ["x", "n"], [ints("n", n, -1)]) for n in (*HUGE, -5, 0)},
    **{
        f"OneHot-{n}": lambda n=n: _one("OneHot", ["k", "n", "v"], [ints("k", 1), ints("n", n), _float("v", 0, 1)])
        for n in HUGE
    },
    **{f"TopK-{n}": lambda n=n: _one("TopK", ["x", "n"], [ints("n", n)]) for n in (*HUGE, -1)},
    **{f"Split-{n}": lambda n=n: _one("Split", ["x"], [], num_outputs=n) for n in (2**31, 2**62, 0, -3)},
    **{f"EyeLike-{n}": lambda n=n: _one("EyeLike", ["x"], [], (4, 4), k=n) for n in (2**62, -(2**62))},
    **{f"Trilu-{n}": lambda n=n: _one("Trilu", ["x", "n"], [_scalar("n", n)], (4, 4)) for n in (2**62, -(2**63))},
    **{
        f"Resize-{s}": lambda s=s: _one("Resize", ["x", "", "s"], [_float("s", 1, 1, s, s)], (1, 1, 4, 4))
        for s in (1e30, np.nan, np.inf, -1.0, 0.0, 1e-30)
    },
    **{
        f"Resize-to-{n}": lambda n=n: _one("Resize", ["x", "", "", "s"], [ints("s", 1, 1, n, 1)], (1, 1, 4, 4))
        for n in HUGE
    },
    **{f"kernel-{n}": lambda n=n: _attribute("MaxPool", "kernel_shape", [n, n]) for n in (*HUGE, 0, -1)},
    **{f"pads-{n}": lambda n=n: _attribute("Conv", "pads", [n] * 4, inputs="x w") for n in (*HUGE, -100)},
    **{f"strides-{n}": lambda n=n: _attribute("Conv", "strides", [n] * 2, inputs="x w") for n in (0, -1, 2**62)},
    **{f"dilations-{n}": lambda n=n: _attribute("Conv", "dilations", [n] * 2, inputs="x w") for n in (0, -1, 2**62)},
    **{f"group-{n}": lambda n=n: _attribute("Conv", "group", n, inputs="x w") for n in (0, -1, 2**62)},
    **{f"transposed-{n}": lambda n=n: _attribute("ConvTranspose", "strides", [n, n], inputs="x w") for n in HUGE},
    **{
        f"output-padding-{n}": lambda n=n: _attribute("ConvTranspose", "output_padding", [n, n], inputs="x w")
        for n in HUGE
    },
    **{f"depth-{n}": lambda n=n: _attribute("DepthToSpace", "blocksize", n) for n in (0, -2, 2**32, 2**62)},
    **{f"perm-{p}": lambda p=p: _attribute("Transpose", "perm", p) for p in ([0, 0, 1, 2], [9, 1, 2, 3], [0, 1])},
    **{f"axis-{n}": lambda n=n: _attribute("Softmax", "axis", n) for n in (4, -5, 2**62)},
    **{
        f"einsum-{e[:8]}": lambda e=e: _attribute("Einsum", "equation", e)
        for e in ("", "->", "ijkl->z", "i...j->", "abcd" * 2000)
    },
    "twice": lambda: _twice(31),
    "itself": _itself,
    **{f"branches-{n}": lambda n=n: _branches(n) for n in (8, 25)},
    "chain": lambda: _chain(1000),
    "doubling": lambda: _doubling("Mul", 40),
    "concat": lambda: _concat(16),
    "products": lambda: _shapes(12),
    **{f"Loop-{n}": lambda n=n: _loop(n) for n in (10**6, 2**62, -1)},
    "weight-overflow": lambda: _declared(2**32, 2**32),
    "weight-product": lambda: _declared(2**62, 2**62, 2**62),
    "weight-large": lambda: _declared(2**40),
    "weight-negative": lambda: _declared(-8, -12),
    "weight-ranks": lambda: _declared(*[1] * 3000),
    "typed-large": lambda: _typed(2**40),
    "typed-overflow": lambda: _typed(2**62, 4),
    "typed-zero": lambda: _typed(0, 2**62),
    "sparse": _sparse,
    "input-large": lambda: _input(2**40, 2**40),
    "input-ranks": lambda: _input(*[2] * 200),
    "input-symbols": lambda: _input(*(f"a{i}" for i in range(200))),
    "input-words": lambda: _input("a*a*a", "a**9**9**9", "9**9**9**9", "(" * 500 + "a" + ")" * 500, "'a' * 9999999999"),
    "input-self": lambda: _input("a + b", "b + a", "a"),
    "nested-bytes": lambda: _nested_bytes(2000),
    "length-beyond": lambda: b"\x08\x09\x3a" + varint(2**63) + b"xx",
    "length-wraps": lambda: b"\x08\x09\x3a" + varint(2**64 - 3) + b"xx",
    "groups": lambda: b"\x08\x09" + b"\x3b" * 100000,
    **{
        f"file-{n}": lambda place=place: _outside(place)
        for n, place in enumerate(
            ("/etc/passwd", "../secret.bin", "a/../../secret.bin", "..\\secret.bin", "C:\\secret.bin", "C:secret.bin",
             "\\\\host\\share", "link.bin", "folder/secret.bin", "", ".", "missing.bin", "weights.bin\0", "a" * 5000,
             "/dev/zero", "pipe", "model.onnx/x", "//etc/passwd", "file:///etc/passwd", "~/secret.bin", "loop.bin")
        )
    },
    **{
        f"extent-{n}": lambda pair=pair: _extent(*pair)
        for n, pair in enumerate(
            (("-4", "384"), ("4", "384"), ("0", "385"), ("0", "-1"), ("99999999999999999999", "384"), ("zero", "384"),
             ("1e3", "384"), ("0", "18446744073709551616"), ("9" * 5000, "1"), ("0", "380"))
        )
    },
}  # fmt: skip
"""Name -> a model, or the bytes of one."""
