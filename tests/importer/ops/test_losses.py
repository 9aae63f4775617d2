"""Losses against onnxruntime: reductions, weights, ignored targets, the logarithms as a second output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model

KINDS = ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (2, 4, 3), (2, 3, 2, 5)])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 0, -100])
def test_losses(
    tmp_path: Path, kind: str, shape: tuple[int, ...], reduction: str, weighted: bool, ignored: int | None
) -> None:
    target = np.random.default_rng(0).integers(0, shape[1], (shape[0], *shape[2:]))
    options: dict[str, Any] = {"reduction": reduction, "opset": 13}
    if ignored is not None:
        options["ignore_index"] = ignored
        target.ravel()[0] = ignored
    weight = np.abs(normal(shape[1], seed=2)) if weighted else None
    check(tmp_path, kind, normal(*shape), target, weight, **options)
    if kind == "SoftmaxCrossEntropyLoss":
        check(tmp_path, kind, normal(*shape), target.astype(np.int32), weight, outputs=2, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_when_every_target_is_ignored_or_scores_are_large(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, normal(3, 5), np.array([1, 1, 1]), ignore_index=1, opset=13)
    check(tmp_path, kind, 1e4 * normal(3, 5), np.array([1, 4, 0]), opset=13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_half_precision_is_computed_in_single(tmp_path: Path, kind: str, reduction: str) -> None:
    """The sum of the losses, and of 70000 exponentials, lies beyond half precision."""
    scores, target = np.zeros((2, 70000), np.float16), np.array([0, 69999])
    scores[:, 1] = 9.0
    weight = np.full(70000, 0.5, np.float16)
    options = {"reduction": reduction, "opset": 13}
    path, feeds = single(tmp_path, kind, scores, target, weight, **options)
    (half,) = run(import_model(path), tmp_path, feeds)
    wide = scores.astype(np.float32), target, weight.astype(np.float32)
    path, feeds = single(tmp_path, kind, *wide, **options)
    np.testing.assert_array_equal(half, run(import_model(path), tmp_path, feeds)[0].astype(np.float16))
    assert np.isfinite(half).all()


def test_targets_outside_the_classes_read_no_other_memory(tmp_path: Path) -> None:
    scores, target = normal(2, 3), np.array([-7, 9])
    path, feeds = single(tmp_path, KINDS[0], scores, target, reduction="none")
    np.testing.assert_array_equal(run(import_model(path), tmp_path, feeds)[0], -scores[[0, 1], [0, 2]])


def test_a_symbolic_batch(tmp_path: Path) -> None:
    node = helper.make_node(KINDS[1], ["x", "t"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n", 4]), "t": ("int64", ["n"])}, ["y"], opset=13)
    compare(path, {"x": normal(5, 4), "t": np.array([0, 3, 1, 2, 2])}, {"n": 5})


def test_losses_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, KINDS[0], normal(2, 3, 4), np.array([0, 1]))
    with pytest.raises(ConfigError, match="targets"):
        import_model(path)
    path, _ = single(tmp_path, KINDS[0], normal(2, 3), np.array([0, 1]), reduction="max")
    with pytest.raises(ConfigError, match="reduction is 'max'"):
        import_model(path)
