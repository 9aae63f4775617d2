"""Windows of tensors that leave a group, against the buffers of lowered programs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import pytest
from scheduler.graphs import make_graph

from tests.lower.cases import Case
from tilec.ir.intervals import Candidates
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate
from tilec.scheduler.analysis.window_propagation import CandidateEnds, volume
from tilec.scheduler.memory_levels.stored_windows import stored_window
from tilec.scheduler.tiling.tile_footprints import movers, shapes_of, tile_footprints

GROUPS: dict[str, tuple[list[str], dict[str, int], dict[str, tuple[int, ...]], dict[str, int]]] = {
    "a stride leaves gaps": (["a[i] = x[i] * 2.0", "y[j] = a[j*3] + 1.0"], {"i": 21, "j": 7}, {"x": (21,)}, {"j": 2}),
    "a stride leaves gaps in two dimensions": (
        ["a[p, q] = x[p, q] * 2.0", "y[u, v] = a[u*2, v*2] + 1.0"],
        {"p": 12, "q": 16, "u": 6, "v": 8},
        {"x": (12, 16)},
        {"u": 2, "v": 4},
    ),
    "one row is read": (
        ["a[p, q] = x[p, q] * 2.0", "y[v] = a[1, v] + 1.0"],
        {"p": 3, "q": 12, "v": 12},
        {"x": (3, 12)},
        {"v": 4},
    ),
    "halos overlap": (
        ["a[i] = x[i] * 2.0", "y[j] = a[j] + a[j + 1] + a[j + 2]"],
        {"i": 14, "j": 12},
        {"x": (14,)},
        {"j": 4},
    ),
    "one loop moves two dimensions": (
        ["a[i, j] = x[i, j] * 2.0", "y[i] = a[i, i] + 1.0"],
        {"i": 6, "j": 6},
        {"x": (6, 6)},
        {"i": 2},
    ),
    "two loops move one dimension": (
        ["a[q] = x[q] * 2.0", "y[u, v] = a[u*4 + v] + 1.0"],
        {"q": 12, "u": 3, "v": 4},
        {"x": (12,)},
        {"u": 1, "v": 2},
    ),
    "of two loops that move one dimension one runs": (
        ["a[q] = x[q] * 2.0", "y[u, v] = a[u*4 + v] + 1.0"],
        {"q": 12, "u": 3, "v": 4},
        {"x": (12,)},
        {"u": 1},
    ),
}


@pytest.mark.feature("W06", "W08")
@pytest.mark.parametrize("name", GROUPS)
def test_a_tile_holds_as_much_of_a_tensor_that_leaves_as_its_program(name: str) -> None:
    texts, extents, inputs, sizes = GROUPS[name]
    case = Case(texts, extents, inputs, {"l2": {"y": sizes}}, outputs=("y", "a"))
    buffers = [s.buffer for s in statements(case.program().body) if isinstance(s, Allocate)]
    (lowered,) = (prod(int(n.value) for n in b.shape) for b in buffers if (b.tensor, b.level) == ("a", "l2"))  # type: ignore[union-attr]
    assert stored(texts, extents, inputs, sizes) == lowered


def stored(
    texts: list[str], extents: Mapping[str, int], inputs: dict[str, tuple[int, ...]], sizes: Mapping[str, int]
) -> int:
    """Elements of `a` that a tile holds."""
    graph = make_graph(inputs, [(text, extents) for text in texts], ["y", "a"])
    final, made = graph.nodes[-1].expr, graph.nodes[0].expr
    tiles = {i: np.asarray(n, np.int64) for i, n in sizes.items()}
    box = tile_footprints(graph.nodes, tiles, {}, shapes_of((final, made), graph), Candidates()).boxes["a"]
    loops = {i: (tiles.get(i, np.asarray(extents[i])), extents[i]) for i in final.spatial}
    moving = movers(graph.nodes)["a"]
    window, shape = [box[i] for i in made.spatial], [extents[i] for i in made.spatial]
    return int(volume(stored_window(window, shape, [moving[i] for i in made.spatial], loops, CandidateEnds())))
