"""Rotary positions against onnxruntime, and attention through onnx's own definition."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal

POSITIONS = np.array([[0, 3, 2], [5, 1, 4]], np.int64)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
def test_rotary_embedding(tmp_path: Path, interleaved: int, turned: int) -> None:
    half = (turned or 8) // 2
    cos, sin = normal(6, half), normal(6, half, seed=1)
    options = {"interleaved": interleaved, "rotary_embedding_dim": turned, "num_heads": 2}
    check(tmp_path, "RotaryEmbedding", normal(2, 2, 3, 8), cos, sin, POSITIONS, opset=23, **options)
    check(tmp_path, "RotaryEmbedding", normal(2, 3, 16), cos, sin, POSITIONS, opset=23, **options)


def test_rotary_embedding_with_angles_for_each_token(tmp_path: Path) -> None:
    cos, sin = normal(2, 3, 4), normal(2, 3, 4, seed=1)
    check(tmp_path, "RotaryEmbedding", normal(2, 2, 3, 8), cos, sin, opset=23)


@pytest.mark.parametrize("options", [{}, {"is_causal": 1}, {"scale": 0.3}, {"softcap": 2.0}])
def test_attention(tmp_path: Path, options: dict[str, float]) -> None:
    q, k, v = (normal(2, 3, 4, 8, seed=i) for i in range(3))
    check(tmp_path, "Attention", q, k, v, opset=23, **options)


def test_attention_with_fewer_key_heads_a_mask_and_a_cache(tmp_path: Path) -> None:
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 3, 8, seed=1), normal(2, 2, 3, 8, seed=2)
    past = normal(2, 2, 5, 8, seed=3), normal(2, 2, 5, 8, seed=4)
    mask = np.where(normal(3, 8) > 0, 0, -1e4).astype(np.float32)
    check(tmp_path, "Attention", q, k, v, mask, *past, opset=23, outputs=3)
