"""Coded tensors as words and bytes: every code of every type, by compiled kernels and on the tile machine alike."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scheduler.running import illegal
from verify.builds import generated

from tilec.ir.codes import decode_array, encode_array, number_type
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import as_expr
from tilec.ir.graph import Graph, Node, Port, Tensor, WeightRef
from tilec.ir.plan import Plan
from tilec.ir.text import parse_tensor
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.ir.verify.graph import check_graph
from tilec.ir.weights import read_constant
from tilec.ir.words import pack_codes
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.runtime.session import load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

SMALL = [name for name, each in TTYPES.items() if each.coded and each.bits <= 8]
Array = NDArray[Any]
Codes = Mapping[str, tuple[str, Array]]
Nodes = Mapping[str, tuple[Mapping[str, int], str]]


def graph_of(folder: Path, nodes: Nodes, codes: Codes, x: int, scales: Mapping[str, Array] | None = None) -> Graph:
    """Expressions (text -> extents, type) over an input `x[x]` and constants in a file; all but the last are outputs
    unless the last reads them."""
    arrays = {name: (ttype, _packed(ttype, array)) for name, (ttype, array) in codes.items()}
    arrays |= {name: ("f32", array.astype(np.float32)) for name, array in (scales or {}).items()}
    tensors = {"x": Tensor((as_expr(x),), "f32")}
    tensors |= {name: Tensor(tuple(map(as_expr, array.shape)), ttype) for name, (ttype, array) in codes.items()}
    tensors |= {name: Tensor(tuple(map(as_expr, each.shape)), "f32") for name, each in (scales or {}).items()}
    constants, data = {}, b""
    for name, (_, array) in arrays.items():
        constants[name] = WeightRef("codes.bin", len(data), array.nbytes)
        data += array.tobytes() + bytes(-array.nbytes % 64)
    (folder / "codes.bin").write_bytes(data)
    made = [Node(parse_tensor(text, {k: as_expr(v) for k, v in ext.items()})) for text, (ext, _) in nodes.items()]
    tensors |= {n.name: Tensor(n.expr.shape, ttype) for n, (_, ttype) in zip(made, nodes.values(), strict=True)}
    ports = tuple(Port(node.name, node.name) for node in made if not node.name.startswith("w"))
    graph = Graph("g", (), (Port("x", "x"),), ports, tensors, constants, tuple(made), {"codes.bin": "0" * 64})
    assert check_graph(graph) == ()
    return graph


def _packed(ttype: str, array: Array) -> Array:
    """Codes in words; elements of a plain type as they are."""
    return pack_codes(array, ttype) if TTYPES[ttype].coded else array.astype(numpy_dtype(ttype))


def on_machine(plan: Plan, folder: Path, x: Array) -> dict[str, Array]:
    arrays = {"x": x} | {n: read_constant(n, c, plan.tensors[n], folder) for n, c in plan.constants.items()}
    for node in plan.prepared:
        arrays[node.name] = evaluate(node.expr, arrays, ttype=plan.tensors[node.name].ttype)
    for group in plan.groups:
        arrays |= execute(lower(group, group.variants[0], plan), arrays, {}).outputs
    return {port.name: arrays[port.tensor] for port in plan.outputs}


def results(
    graph: Graph, folder: Path, x: Array, options: ScheduleOptions | None = None, rounded: Collection[str] = ()
) -> dict[str, Array]:
    """The results of kernels, which the tile machine makes too, bit by bit but for the sums that are `rounded`."""
    plan = schedule(graph, resolve_device("host"), options)
    assert illegal(plan) == []
    assert not any(TTYPES[tensor.ttype].coded for tensor in plan.tensors.values())
    generated(plan, folder, "host")
    found = load(folder, threads=1).run({"x": x})
    for name, same in on_machine(plan, folder, x).items():
        if name in rounded:
            np.testing.assert_allclose(found[name], same, rtol=1e-5, atol=1e-4, err_msg=name)
        elif rounded:  # a sum of no elements but -0 has either sign
            np.testing.assert_array_equal(found[name], same, name)
        else:
            assert found[name].tobytes() == same.tobytes(), name
    return found


@pytest.mark.feature("L02", "L18", "L20")
def test_every_code_of_every_type(tmp_path: Path) -> None:
    codes = {f"c_{name}": (name, np.arange(1 << TTYPES[name].bits)) for name in SMALL}
    codes["c_tf32"] = ("tf32", np.arange(1 << 19)[::211])
    nodes = {
        f"y_{ttype}[i] = where(x[0] < 2.0, f32({name}[i]), 0.0)": ({"i": array.size}, "f32")
        for name, (ttype, array) in codes.items()
    }
    found = results(graph_of(tmp_path, nodes, codes, 1), tmp_path, np.ones(1, np.float32))
    for ttype, array in codes.values():
        expected = decode_array(ttype, array).astype(np.float32)
        np.testing.assert_array_equal(found[f"y_{ttype}"].view(np.uint32), expected.view(np.uint32), ttype)


@pytest.mark.feature("L12", "L18")
def test_numbers_are_rounded_to_every_type(tmp_path: Path) -> None:
    names = [name for name in SMALL if TTYPES[name].encode]
    steps = np.arange(1 << 16, dtype=np.uint32)[::7] << 16
    x = np.concatenate([steps, steps + 0x7FFF, steps + 0x8000]).astype(np.uint32).view(np.float32)
    nodes = {}
    for name in names:
        number = "x[i]" if TTYPES[name].kind == "float" else "maximum(minimum(x[i], 900.0), -900.0)"
        nodes[f"q_{name}[i] = {name}({number})"] = ({"i": x.size}, name)
        nodes[f"y_{name}[i] = f32(q_{name}[i])"] = ({"i": x.size}, "f32")
    found = results(graph_of(tmp_path, nodes, {}, x.size), tmp_path, x)
    for name in names:
        with np.errstate(all="ignore"):
            numbers = x if TTYPES[name].kind == "float" else np.nan_to_num(x.clip(-900, 900)).astype(np.int32)
        expected = encode_array(name, numbers.astype(numpy_dtype(number_type(name))))
        np.testing.assert_array_equal(found[f"q_{name}"].view(np.uint8), expected, name)
        decoded = decode_array(name, expected).astype(np.float32)
        np.testing.assert_array_equal(found[f"y_{name}"].view(np.uint32), decoded.view(np.uint32), name)


@pytest.mark.quick_cases(
    "False-11-5-4-in registers",
    "False-11-5-4-at compile time",
    "False-40-1-8-in registers",
    "False-40-1-8-at compile time",
    "True-11-5-4-at compile time",
    "True-64-37-32-at compile time",
    "True-1-1-1-in registers",
    "True-1-1-1-at compile time",
    "True-40-1-8-at compile time",
)
@pytest.mark.feature("L17", "L20", "L27")
@pytest.mark.parametrize("passes", [None, ("compose",)], ids=["in registers", "at compile time"])
@pytest.mark.parametrize(("k", "n", "group"), [(11, 5, 4), (64, 37, 32), (1, 1, 1), (40, 1, 8), (96, 16, 24)])
@pytest.mark.parametrize("columns", [False, True])
def test_products_of_groups(
    tmp_path: Path, columns: bool, k: int, n: int, group: int, passes: tuple[str, ...] | None
) -> None:
    draw = np.random.default_rng((k, n, columns))
    codes, nodes = {}, {}
    scales = {"s": draw.integers(1, 4, (-(-k // group), n))}
    for ttype in ("i4", "u3", "i1", "u2", "e2m1", "nf4", "e4m3fn", "e3m2"):
        shape = (n, k) if columns else (k, n)
        array = draw.integers(0, 1 << TTYPES[ttype].bits, shape)
        codes[f"c_{ttype}"] = (ttype, np.where(array % 128 == 127, 0, array))
        at = "j, i" if columns else "i, j"
        nodes[f"w_{ttype}[i, j] = f32(c_{ttype}[{at}]) * s[i // {group}, j]"] = ({"i": k, "j": n}, "f32")
        nodes[f"y_{ttype}[n] = sum(k, x[k] * w_{ttype}[k, n])"] = ({"n": n, "k": k}, "f32")
    x = draw.integers(-3, 4, k).astype(np.float32)
    graph = graph_of(tmp_path, nodes, codes, k, scales)
    rounded = {"y_nf4", "y_e4m3fn"}
    found = results(graph, tmp_path, x, ScheduleOptions(passes=passes), rounded)
    for ttype, array in codes.values():
        numbers = decode_array(ttype, array.T if columns else array).astype(np.float64)
        expected = x @ (numbers * np.repeat(scales["s"], group, 0)[:k])
        rounding = 1e-4 if f"y_{ttype}" in rounded else 0
        np.testing.assert_allclose(found[f"y_{ttype}"], expected, rtol=rounding, atol=rounding, err_msg=ttype)


@pytest.mark.feature("L17")
def test_weights_stay_as_small_as_they_are_stored(tmp_path: Path) -> None:
    codes = {"c": ("i4", np.random.default_rng(1).integers(0, 16, (256, 512)))}
    nodes = {
        "w[i, j] = f32(c[i, j]) * s[i // 128, j]": ({"i": 256, "j": 512}, "f32"),
        "y[n] = sum(k, x[k] * w[k, n])": ({"n": 512, "k": 256}, "f32"),
    }
    graph = graph_of(tmp_path, nodes, codes, 256, {"s": np.ones((2, 512))})
    generated(schedule(graph, resolve_device("host")), tmp_path, "host")
    (weights,) = tmp_path.glob("weights-*.safetensors")
    assert weights.stat().st_size <= 1.05 * (tmp_path / "codes.bin").stat().st_size


@pytest.mark.feature("L17")
@pytest.mark.parametrize("rows", [1, 16, 17])
def test_bytes_are_decoded_in_registers_for_a_few_rows(tmp_path: Path, rows: int) -> None:
    """More rows would wait for it longer than for weights that are four times as large."""
    w = np.random.default_rng(4).integers(-128, 128, (64, 48))
    nodes = {
        "w[i, j] = f32(c[i, j]) * s[i // 32, j]": ({"i": 64, "j": 48}, "f32"),
        "y[m, n] = sum(k, x[64 * m + k] * w[k, n])": ({"m": rows, "n": 48, "k": 64}, "f32"),
    }
    graph = graph_of(tmp_path, nodes, {"c": ("i8", w)}, 64 * rows, {"s": np.ones((2, 48))})
    prepared = schedule(graph, resolve_device("zen5-avx512")).prepared
    assert ("w" in {node.name for node in prepared}) == (rows > 16)
    x = np.random.default_rng(5).integers(-3, 4, 64 * rows).astype(np.float32)
    np.testing.assert_array_equal(results(graph, tmp_path, x)["y"], x.reshape(rows, 64) @ w)


@pytest.mark.feature("L20")
def test_words_hold_whole_parts_of_groups(tmp_path: Path) -> None:
    """10 codes of 3 bits fill a word, 8 of them divide groups of 32."""
    array = np.random.default_rng(2).integers(0, 8, (320, 64))
    for extent, words in ((320, 32), (256, 32)):
        codes = {"c": ("i3", array[:extent])}
        nodes = {"y[n] = sum(k, x[k] * f32(c[k, n]))": ({"n": 64, "k": extent}, "f32")}
        plan = schedule(graph_of(tmp_path, nodes, codes, extent), resolve_device("host"))
        assert [e.value for e in plan.prepared[0].expr.shape if e.value != 64] == [words]
        x = np.random.default_rng(3).integers(-3, 4, extent).astype(np.float32)
        found = results(graph_of(tmp_path, nodes, codes, extent), tmp_path, x)
        np.testing.assert_array_equal(found["y"], x @ decode_array("i3", array[:extent]))
