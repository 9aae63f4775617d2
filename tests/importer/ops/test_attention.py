"""Rotary positions against onnxruntime, and attention through onnx's own definition."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model

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


@pytest.mark.parametrize(
    ("table", "positions", "message"),
    [
        ((), None, r"a table of angles \[\]"),
        ((6, 4), None, "a table of angles"),
        ((6, 3), (2, 3), "half the channels and the tables: 3 and 4 differ"),
        ((6, 4), (3,), r"positions \[3\], not"),
        ((6, 4), (2, 5), "tokens and their positions: 5 and 3 differ"),
        ((3, 3, 4), None, "batch and positions: 3 and 2 differ"),
    ],
)
def test_tables_that_do_not_fit(
    tmp_path: Path, table: tuple[int, ...], positions: tuple[int, ...] | None, message: str
) -> None:
    where = None if positions is None else np.zeros(positions, np.int64)
    path, _ = single(tmp_path, "RotaryEmbedding", normal(2, 2, 3, 8), normal(*table), normal(*table), where, opset=23)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


CACHE = normal(2, 2, 2, 8, seed=3), normal(2, 2, 2, 8, seed=4)


@pytest.mark.parametrize("shape", [(3, 7), (2, 1, 3, 7), (2, 4, 3, 7), (4, 3, 7)])
@pytest.mark.parametrize("kind", ["bool", "finite", "infinite"])
@pytest.mark.parametrize("causal", [0, 1])
def test_masks(tmp_path: Path, shape: tuple[int, ...], kind: str, causal: int) -> None:
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8, seed=1), normal(2, 2, 5, 8, seed=2)
    seen = normal(*shape, seed=9) > -0.5
    seen[..., 0] = True
    masked = {"bool": seen, "finite": np.where(seen, 0.5, -1e4), "infinite": np.where(seen, 0.5, -np.inf)}[kind]
    mask = masked if kind == "bool" else masked.astype(np.float32)
    check(tmp_path, "Attention", q, k, v, mask, *CACHE, opset=23, outputs=3, is_causal=causal)


@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("options", [{}, {"is_causal": 1, "softcap": 1.5}])
def test_heads_packed_into_channels(tmp_path: Path, heads: int, options: dict[str, float]) -> None:
    q, k, v = normal(2, 3, 32), normal(2, 5, 8 * heads, seed=1), normal(2, 5, 6 * heads, seed=2)
    check(tmp_path, "Attention", q, k, v, opset=24, q_num_heads=4, kv_num_heads=heads, **options)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_are_put_out(tmp_path: Path, mode: int) -> None:
    q, k, v = (normal(2, 2, 3, 8, seed=i) for i in range(3))
    mask = normal(3, 5, seed=5)
    options = {"qk_matmul_output_mode": mode, "softcap": 2.0}
    check(tmp_path, "Attention", q, k, v, mask, *CACHE, opset=23, outputs=4, **options)


@pytest.mark.parametrize("lengths", [(5, 3), (1, 5), (5, 0)])
@pytest.mark.parametrize("causal", [0, 1])
def test_keys_that_are_padding(tmp_path: Path, lengths: tuple[int, int], causal: int) -> None:
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8, seed=1), normal(2, 2, 5, 8, seed=2)
    known = np.array(lengths, np.int64)
    check(tmp_path, "Attention", q, k, v, None, None, None, known, opset=24, is_causal=causal)


def test_a_query_that_sees_nothing_gives_zero(tmp_path: Path) -> None:
    q, k, v = (normal(1, 2, 3, 4, seed=i) for i in range(3))
    seen = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 1]], bool)
    for mask in (seen, np.where(seen, 0, -np.inf).astype(np.float32)):
        check(tmp_path, "Attention", q, k, v, mask, opset=23)


def test_sizes_of_one_and_of_nothing(tmp_path: Path) -> None:
    check(tmp_path, "Attention", *(normal(1, 1, 1, 2, seed=i) for i in range(3)), opset=23, is_causal=1)
    path, feeds = single(
        tmp_path, "Attention", *(normal(0, 3, 8) for _ in range(3)), opset=23, q_num_heads=2, kv_num_heads=2
    )
    assert run(import_model(path), tmp_path, feeds)[0].shape == (0, 3, 8)
    empty = np.zeros((0, 3), np.int64)
    check(tmp_path, "RotaryEmbedding", normal(0, 2, 3, 8), normal(6, 4), normal(6, 4), empty, opset=23)


def test_attention_of_symbolic_sizes(tmp_path: Path) -> None:
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=4, kv_num_heads=2, is_causal=1)
    shapes = {"q": ["n", "s", 32], "k": ["n", "t", 16], "v": ["n", "t", 16]}
    path = save(tmp_path / "m.onnx", [node], {n: ("float32", s) for n, s in shapes.items()}, ["y"], opset=23)
    feeds = {"q": normal(2, 3, 32), "k": normal(2, 5, 16, seed=1), "v": normal(2, 5, 16, seed=2)}
    compare(path, feeds, {"n": 2, "s": 3, "t": 5})
