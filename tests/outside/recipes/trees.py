"""Models of classical learning."""

from __future__ import annotations

import numpy as np

from tests.outside.recipes.sketch import CLASSICAL, Sketch

F32 = np.float32


def scaled_trees() -> Sketch:
    """Scaled features to an ensemble of trees and to a small network (surrogates of classifiers)."""
    s = Sketch(17)
    x = s.input("input", F32, "rows", 4)
    x = s.op("Scaler", x, domain=CLASSICAL, offset=[0.1, 0.2, 0.3, 0.4], scale=[1.0, 2.0, 0.5, 1.5])
    trees = s.op("TreeEnsembleRegressor", x, domain=CLASSICAL, n_targets=1, **_stumps(3))
    network = s.linear(s.op("Relu", s.linear(x, 4, 8)), 8, 1)
    both = s.op("Cast", s.op("Add", trees, network), to=1)
    s.output(s.op("Reshape", both, s.const([-1, 1])), "variable", F32, "rows", 1)
    return s


def _stumps(count: int) -> dict[str, object]:
    """Trees of one question and two leaves."""
    trees = range(count)
    return {
        "nodes_treeids": [tree for tree in trees for _ in range(3)],
        "nodes_nodeids": [node for _ in trees for node in range(3)],
        "nodes_featureids": [number for tree in trees for number in (tree, 0, 0)],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * count,
        "nodes_values": [number for tree in trees for number in (0.1 * tree, 0.0, 0.0)],
        "nodes_truenodeids": [1, 0, 0] * count,
        "nodes_falsenodeids": [2, 0, 0] * count,
        "nodes_hitrates": [1.0] * 3 * count,
        "nodes_missing_value_tracks_true": [0] * 3 * count,
        "target_treeids": [tree for tree in trees for _ in range(2)],
        "target_nodeids": [1, 2] * count,
        "target_ids": [0] * 2 * count,
        "target_weights": [number for tree in trees for number in (0.5 + tree, -0.25)],
    }
