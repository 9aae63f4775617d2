"""Register tiles that are tried: weights in panels are as wide as is good at all sizes that decisions are made for."""

import pytest
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.intervals import Candidates
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.register_options import register_options
from tilec.scheduler.tiling.register_tiles import register_tile

FEW_BITS = "y[m, n] = sum(k, x[m, k] * (f32(i32(w[k, n]) - 8) * s[n]))"


@pytest.mark.parametrize("name", ["avx2", "zen5-avx512"])
def test_panels_of_one_row_are_no_wider_than_many_rows_want_them(name):
    e = {"m": "rows", "n": 1600, "k": 768}
    constants = {"w": (768, 1600), "s": (1600,)}
    graph = make_graph({"x": ("rows", 768)}, [(FEW_BITS, e)], ["y"], constants, ("rows",), {"w": "u8"})
    target, weights, part = target_model_of(device(name)), frozenset(constants), graph.nodes

    def options(rows, *further):
        sizes = tuple(Candidates({"rows": each}) for each in further)
        (tile,) = register_options(part, graph, weights, target, Candidates({"rows": rows}), further=sizes)
        assert tile.panelled
        return tile.sizes["n"]

    def cycles(rows, width):
        decided = {} if width is None else {"n": width}
        tile = register_tile(part, graph, weights, target, Candidates({"rows": rows}), decided=decided)
        return tile.cycles / (tile.sizes["m"] * tile.sizes["n"])

    alone, both = options(1), options(1, 128)
    assert both < alone
    assert cycles(128, both) < 1.02 * cycles(128, None) < 0.9 * cycles(128, alone)
    assert options(128, 1) == both
    assert options(1, 1) == alone
