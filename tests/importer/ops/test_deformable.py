"""DeformConv against onnxruntime: groups, groups of offsets, masks, strides, padding and dilation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import check, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.expr import variables

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], int, bool, bool]
CASES: list[Case] = [
    ((1, 1, 3, 3), (1, 1, 2, 2), {}, 1, False, False),
    (
        (2, 4, 7, 6),
        (6, 2, 3, 2),
        {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]},
        2,
        True,
        True,
    ),
    ((1, 2, 5, 5), (3, 2, 1, 1), {}, 2, True, False),
    ((1, 4, 6, 6), (4, 4, 3, 3), {"pads": [1, 1, 1, 1]}, 4, False, True),
]


def extents(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> list[int]:
    rank = len(kernel)
    pads = attributes.get("pads", [0] * 2 * rank)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return [(shape[2 + i] + pads[i] + pads[rank + i] - span[i]) // strides[i] + 1 for i in range(rank)]


@pytest.mark.parametrize("opset", [19, 22])
@pytest.mark.parametrize(("shape", "weight", "attributes", "groups", "masked", "biased"), CASES)
def test_images(
    tmp_path: Path,
    shape: tuple[int, ...],
    weight: tuple[int, ...],
    attributes: dict[str, Any],
    groups: int,
    masked: bool,
    biased: bool,
    opset: int,
) -> None:
    out = extents(shape, weight[2:], attributes)
    number = groups * int(np.prod(weight[2:]))
    offset = 2 * normal(shape[0], 2 * number, *out, seed=3)
    bias = normal(weight[0], seed=4) if biased else None
    mask = normal(shape[0], number, *out, seed=5) if masked else None
    options = {"opset": opset, "offset_group": groups, "rtol": 1e-4, "atol": 1e-4}
    check(tmp_path, "DeformConv", normal(*shape), normal(*weight, seed=2), offset, bias, mask, **options, **attributes)


def test_without_offsets_it_is_a_convolution(tmp_path: Path) -> None:
    """In one and three dimensions too, which the reference does not have."""
    for shape, kernel in [((1, 2, 9), (3, 2, 3)), ((1, 2, 4, 5, 4), (2, 2, 2, 3, 2))]:
        attributes = {"pads": [1] * 2 * (len(shape) - 2)}
        out = extents(shape, kernel[2:], attributes)
        offset = np.zeros((1, int(np.prod(kernel[2:])) * len(out), *out), np.float32)
        x, weight = normal(*shape), normal(*kernel, seed=1)
        path, feeds = single(tmp_path, "DeformConv", x, weight, offset, **attributes)
        (found,) = run(import_model(path), tmp_path, feeds)
        path, feeds = single(tmp_path, "Conv", x, weight, **attributes)
        np.testing.assert_allclose(found, run(import_model(path), tmp_path, feeds)[0], rtol=1e-5, atol=1e-5)


def test_offsets_that_do_not_fit(tmp_path: Path) -> None:
    x, weight = normal(1, 1, 3, 3), normal(1, 1, 2, 2)
    path, _ = single(tmp_path, "DeformConv", x, weight, normal(1, 4, 2, 2))
    with pytest.raises(ConfigError, match="offsets and elements of the window"):
        import_model(path)
    path, _ = single(tmp_path, "DeformConv", x, weight, normal(1, 8, 2, 2), offset_group=2)
    with pytest.raises(ConfigError, match="groups of offsets"):
        import_model(path)


@pytest.mark.feature("B06")
def test_open_sizes_of_all_inputs_meet(tmp_path: Path) -> None:
    """Offsets, mask and bias have the batch, the windows and the channels of the images and the weight."""
    shapes = {"x": 4, "w": 4, "o": 4, "b": 1, "m": 4}
    ports = {name: (np.float32, [f"{name}{d}" for d in range(rank)]) for name, rank in shapes.items()}
    node = helper.make_node("DeformConv", list(shapes), ["y"])
    graph = import_model(save(tmp_path / "m.onnx", [node], ports, ["y"], {}, 22)).graph
    alike = {*graph.symbol_values, *(v for each in graph.constraints for v in variables(each.holds))}
    assert {"o0", "m0", "b0"} <= alike
    assert alike & {"o2", "o3", "m2", "m3"} == {"o2", "o3", "m2", "m3"}
