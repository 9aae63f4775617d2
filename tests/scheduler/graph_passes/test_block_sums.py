"""Sums with scales of blocks, as sums of integers that are scaled: against sums in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Call, walk
from tilec.ir.verify.graph import check_graph
from tilec.scheduler.graph_passes.block_sums import ELEMENTS
from tilec.scheduler.graph_passes.integral import integral
from tilec.scheduler.graph_passes.write_out_sums import TERMS, write_out_sums
from tilec.scheduler.refusals import RewrittenGraph

M, N = 3, 5


@pytest.mark.feature("L05", "L27")
@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.sampled_from([2, 3, 8, 32, 40, 64]), st.integers(0, 9), st.sampled_from([0, 3, 8]))
def test_blocks_are_summed_up_as_integers_and_written_out(blocks: int, block: int, seed: int, zero: int) -> None:
    k = blocks * block
    weight = (
        f"b[k, n] = f32(i32(w[k, n]) - {zero}) * t[k // {block}, n]"
        if zero
        else (f"b[k, n] = f32(i32(w[k, n])) * t[k // {block}, n]")
    )
    product = f"y[m, n] = sum(k, f32(i32(x[m, k])) * s[m, k // {block}] * b[k, n])"
    graph = make_graph(
        {"x": (M, k), "s": (M, blocks), "w": (k, N), "t": (blocks, N)},
        [(weight, {"k": k, "n": N}), (product, {"m": M, "n": N, "k": k})],
        ["y"],
        ttypes={"x": "i8", "w": "u8"},
    )
    summed = integral(RewrittenGraph(graph))
    after = write_out_sums(summed).graph
    assert check_graph(after) == ()
    inner = [n.expr for n in summed.graph.nodes if "integral" in n.name]
    assert len(inner) == 1
    assert len(inner[0].reduce) == 1
    assert int(str(inner[0].extents[-1].value)) <= ELEMENTS  # type: ignore[union-attr]
    assert not any("integral" in node.name for node in after.nodes) or ELEMENTS > TERMS
    final = next(node.expr for node in after.nodes if node.name == "y")
    assert sum(isinstance(part, Call) and part.fn == "f32" for part in walk(final.value)) == 1

    rng = np.random.default_rng(seed)
    arrays = {
        "x": rng.integers(-128, 128, (M, k)).astype(np.int8),
        "w": rng.integers(0, 256, (k, N)).astype(np.uint8),
        "s": rng.uniform(0.5, 2, (M, blocks)).astype(np.float32),
        "t": rng.uniform(0.5, 2, (blocks, N)).astype(np.float32),
    }
    known = dict(arrays)
    for node in after.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=after.tensors[node.name].ttype)
    wide = {name: each.astype(np.float64) for name, each in arrays.items()}
    factors = wide["x"] * np.repeat(wide["s"], block, 1), (wide["w"] - zero) * np.repeat(wide["t"], block, 0)
    exact, size = factors[0] @ factors[1], np.abs(factors[0]) @ np.abs(factors[1])
    assert (np.abs(known["y"] - exact) <= 1e-6 * size).all()
