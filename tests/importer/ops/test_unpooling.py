"""MaxUnpool and Col2Im against onnxruntime: strides, padding, dilation, given shapes, one and three dimensions."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal


@pytest.mark.parametrize("known", [[], [1]])
def test_max_unpool(tmp_path: Path, known: list[int]) -> None:
    places = np.array([[[[5, 7], [13, 15]]]])
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "opset": 22}
    check(tmp_path, "MaxUnpool", normal(1, 1, 2, 2), places, known=known, **options)
    check(tmp_path, "MaxUnpool", normal(1, 1, 2, 2), places, np.array([1, 1, 5, 5]), known=[*known, 2], **options)
    check(tmp_path, "MaxUnpool", normal(1, 1, 2, 2), np.zeros_like(places), known=known, **options)
    check(tmp_path, "MaxUnpool", normal(1, 1, 2, 2), places % 9, pads=[1, 0, 0, 1], known=known, **options)
    check(tmp_path, "MaxUnpool", normal(2, 3, 4), np.arange(24).reshape(2, 3, 4) * 2, kernel_shape=[2], strides=[2])


@pytest.mark.parametrize(
    ("image", "block", "options"),
    [
        ((5, 5), (1, 5), {}),
        ((5, 7), (2, 3), {}),
        ((5, 5), (3, 3), {"strides": [2, 1]}),
        ((6, 6), (2, 2), {"dilations": [1, 5]}),
        ((5, 5), (2, 3), {"pads": [0, 1, 2, 1]}),
        ((4, 5, 6), (1, 2, 3), {"strides": [1, 2, 3], "pads": [0, 1, 0, 0, 0, 1]}),
        ((1, 1), (1, 1), {}),
    ],
)
def test_col2im(tmp_path: Path, image: tuple[int, ...], block: tuple[int, ...], options: dict[str, list[int]]) -> None:
    rank = len(image)
    one, none = [1] * rank, [0] * 2 * rank
    blocks = 1
    for d, (size, kernel) in enumerate(zip(image, block, strict=True)):
        pads = options.get("pads", none)
        span = options.get("dilations", one)[d] * (kernel - 1) + 1
        blocks *= (size + pads[d] + pads[rank + d] - span) // options.get("strides", one)[d] + 1
    x = normal(2, 2 * int(np.prod(block)), blocks)
    check(tmp_path, "Col2Im", x, np.array(image), np.array(block), known=[1, 2], **options)
