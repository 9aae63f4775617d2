"""Tables of the manual beside those of Ladder (OSDI 2024): bytes and planned times of layers by the type of weights.

Plans need no weights: graphs here name constants whose data nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from tilec.analysis.totals import predicted
from tilec.ir.expr import as_expr, constant_value
from tilec.ir.graph import Graph, Node, Port, Tensor, WeightRef
from tilec.ir.plan import Plan
from tilec.ir.text import parse_tensor
from tilec.ir.types import tensor_bytes
from tilec.pipeline.code_decisions import decide_for
from tilec.scheduler import schedule
from tilec.scheduler.pipeline import GRAPH_PASSES, SEARCH
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

Shape = tuple[int, int]

LLAMA: tuple[tuple[int, Shape], ...] = ((1, (8192, 10240)), (1, (8192, 8192)), (2, (8192, 28672)), (1, (28672, 8192)))
"""Products of a layer of LLaMA-2-70B, how often and [in, out]: queries, keys and values in one, and the other four."""

BLOOM = 2_466_250_752
"""Weights of a layer of BLOOM-176B."""

CONTEXT = 432
"""MiB that the paper's measurements of memory have besides weights."""

WEIGHTS = ("f16", "i8", "i4", "i2", "i1")

GAINS = {"i8": "1.7 - 1.8", "i4": "3.0", "i2": "3.6 - 5.0", "i1": "3.9 - 6.6"}
"""Times that decoding is faster with weights of a type than with f16 on an A100 (its figures 8 and 15)."""

LAUNCH = 0.9e-6
"""Seconds of a launch in the roofline."""

MEBIBYTE = 1 << 20


def memory() -> list[tuple[str, ...]]:
    """MiB of the weights of a layer by type, with the context, and what figure 11 has."""
    rows: list[tuple[str, ...]] = [("layer", "weights", "MiB", "with 432 MiB", "Ladder")]
    told = {"f16": "2064", "e4m3fn": "1248", "i4": "840", "i1": "534"}
    for ttype in ("f16", "e4m3fn", "i4", "i2", "i1"):
        size = sum(count * _bytes(ttype, shape) for count, shape in LLAMA)
        rows.append(("LLaMA-2-70B", ttype, *_with_context(size), told.get(ttype, "-")))
    for name, scale, group in (("i4[128]*f16", "f16", 128), ("mxfp8", "e8m0", 32)):
        element = "i4" if name.startswith("i4") else "e4m3fn"
        size = sum(count * (_bytes(element, (k, n)) + _bytes(scale, (k // group, n))) for count, (k, n) in LLAMA)
        rows.append(("LLaMA-2-70B", name, *_with_context(size), told[element] + ", without scales"))
    for ttype, half, paper in (
        ("f16", False, "5136"),
        ("e4m3fn", True, "3960"),
        ("i4", True, "3372"),
        ("i1", True, "2931"),
        ("i1", False, "-"),
    ):
        whole, plain = (constant_value(tensor_bytes(each, (BLOOM,))) or 0 for each in (ttype, "f16"))
        size = (whole + plain) // 2 if half else whole
        rows.append(("BLOOM-176B", f"half f16, half {ttype}" if half else ttype, *_with_context(size), paper))
    return rows


def _with_context(size: int) -> tuple[str, str]:
    return f"{size / MEBIBYTE:g}", f"{size / MEBIBYTE + CONTEXT:g}"


def decode() -> list[tuple[str, ...]]:
    """Planned milliseconds of the products of a layer for one token."""
    rows: list[tuple[str, ...]] = [
        ("weights", "roofline, ms", "planned, ms", "ratio", "gain over f16", "Ladder's gain", "decoded in memory, ms")
    ]
    plain = layer_seconds(1, "f16")
    stored = _options(tuple(each.name for each in GRAPH_PASSES if each.name != "decode_weights"))
    for ttype in WEIGHTS:
        bound, planned, early = roofline(ttype), layer_seconds(1, ttype), layer_seconds(1, ttype, stored)
        ratio, gain = f"{planned / bound:.2f}", f"{plain / planned:.2f}"
        times = [f"{seconds * 1e3:.3f}" for seconds in (bound, planned, early)]
        rows.append((ttype, times[0], times[1], ratio, gain, GAINS.get(ttype, "1"), times[2]))
    return rows


def widths() -> list[tuple[str, ...]]:
    """Planned milliseconds of a layer by type of weights, sequence and batch."""
    cases = ((1, 1), (32, 1), (1, 4096), (32, 4096))
    rows: list[tuple[str, ...]] = [("weights", *(f"batch {batch}, sequence {length}" for batch, length in cases))]
    plain = [layer_seconds(batch * length, "f16") for batch, length in cases]
    for ttype in WEIGHTS:
        times = [layer_seconds(batch * length, ttype) for batch, length in cases]
        rows.append((ttype, *(f"{t * 1e3:.3g} ({t / of:.2f})" for t, of in zip(times, plain, strict=True))))
    return rows


def places() -> list[tuple[str, ...]]:
    """The level at which weights of 8192 x 28672 are decoded, by rows of the activations."""
    counts = (1, 8, 16, 32, 4096)
    rows: list[tuple[str, ...]] = [("device", "weights", *(f"M = {count}" for count in counts))]
    for device in ("a100", "zen5-avx512"):
        for ttype in ("i8", "i4"):
            plans = [product_plan(count, (8192, 28672), ttype, device=device) for count in counts]
            rows.append((device, ttype, *(place_of_decoding(plan) for plan in plans)))
    return rows


def breakdown() -> list[tuple[str, ...]]:
    """Planned milliseconds of a layer with what Ladder adds step by step, each step options of `schedule`."""
    cases = (("i4", 1), ("i1", 1), ("i4", 4096))
    head = ("step", "`schedule`", *(f"{ttype}, sequence {rows}" for ttype, rows in cases))
    rows: list[tuple[str, ...]] = [head]
    before: list[float] = []
    for step, told, options in steps():
        times = [layer_seconds(length, ttype, options) for ttype, length in cases]
        rows.append((step, told, *(f"{t * 1e3:.3g}" + _gain(t, before, at) for at, t in enumerate(times))))
        before = times
    return rows


def steps() -> Iterator[tuple[str, str, ScheduleOptions]]:
    """(step, options in words, options), each with those before it."""
    plain = tuple(each.name for each in GRAPH_PASSES if each.name not in ("choose_layouts", "decode_weights"))
    vectors = ("fma",)
    yield "none", "`passes` without choose_layouts, decode_weights; `units: [fma]`", _options(plain, vectors)
    rewrites = tuple(each.name for each in GRAPH_PASSES)
    one = tuple(each.name for each in SEARCH if each.name != "compare_plans")
    yield "+ Transform", "`passes` without compare_plans; `units: [fma]`", _options((*rewrites, *one), vectors)
    yield "+ PTX", "`passes` without compare_plans", _options((*rewrites, *one))
    yield "+ Holistic", "all", _options()


def _options(passes: tuple[str, ...] | None = None, units: tuple[str, ...] | None = None) -> ScheduleOptions:
    return ScheduleOptions(bounds=False, passes=passes, units=units)


def _gain(seconds: float, before: Sequence[float], at: int) -> str:
    return f" ({before[at] / seconds:.2f}x)" if before else ""


def place_of_decoding(plan: Plan) -> str:
    """Where a plan decodes its weight: at compile time, or the highest level, in whose registers a product reads it."""
    return "compile time" if any(node.name == "d" for node in plan.prepared) else plan.levels[-1].name


def roofline(ttype: str) -> float:
    """Seconds of the products of a layer that only read their weights."""
    rate = resolve_device("a100").bandwidth("dram")
    assert rate is not None
    return sum(count * (_bytes(ttype, shape) / rate + LAUNCH) for count, shape in LLAMA)


def layer_seconds(rows: int, ttype: str, options: ScheduleOptions | None = None) -> float:
    """Predicted seconds of the products of a layer on an a100."""
    return sum(count * predicted(product_plan(rows, shape, ttype, options)) for count, shape in LLAMA) / 1e12


@cache
def product_plan(
    rows: int, shape: Shape, ttype: str, options: ScheduleOptions | None = None, device: str = "a100"
) -> Plan:
    """The plan of a product of f16 activations with weights of a type."""
    spec = resolve_device(device)
    return schedule(_product(rows, shape, ttype), spec, options or _options(), decide=decide_for(spec))


def _product(rows: int, shape: Shape, ttype: str) -> Graph:
    inner, columns = shape
    texts = [("y[m, n] = sum(k, f32(x[m, k]) * f32(w[k, n]))", {"m": rows, "n": columns, "k": inner}, "f16")]
    if ttype != "f16":
        texts[0] = (texts[0][0].replace("w[", "d["), *texts[0][1:])
        texts.insert(0, ("d[i, j] = f16(f32(w[i, j]))", {"i": inner, "j": columns}, "f16"))
    nodes = tuple(Node(parse_tensor(text, {i: as_expr(n) for i, n in ext.items()})) for text, ext, _ in texts)
    tensors = {"x": Tensor((as_expr(rows), as_expr(inner)), "f16"), "w": Tensor(tuple(map(as_expr, shape)), ttype)}
    tensors |= {node.name: Tensor(node.expr.shape, made) for node, (*_, made) in zip(nodes, texts, strict=True)}
    constants = {"w": WeightRef("weights", 0, _bytes(ttype, shape))}
    ports = (Port("x", "x"),), (Port("y", "y"),)
    return Graph("product", (), *ports, tensors, constants, nodes, {"weights": "0" * 64})


def _bytes(ttype: str, shape: Sequence[int]) -> int:
    size = constant_value(tensor_bytes(ttype, tuple(shape)))
    assert size is not None
    return size
