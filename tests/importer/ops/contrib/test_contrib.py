"""Contrib operators against onnxruntime, odd sizes and absent inputs included, and native without a node left over.

Results of quantised operators may differ by one step, where onnxruntime's sum in f32 is rounded to the other side.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import helper, normal, onnxruntime, run, save
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

Arrays = list[NDArray[Any] | None]


def f(*values: float) -> NDArray[Any]:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def integers(ttype: str, *shape: int, seed: int = 0) -> NDArray[Any]:
    limits = np.iinfo(ttype)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max, shape, ttype, endpoint=True)


def model(
    folder: Path, kind: str, arrays: Arrays, outputs: int, known: tuple[int, ...], **attributes: Any
) -> tuple[Path, dict[str, NDArray[Any]]]:
    """A model of one operator and feeds for it; inputs listed in `known` are initializers."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    given = {n: np.asarray(a) for n, a in zip(names, arrays, strict=True) if a is not None}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, names, results, domain="com.microsoft", **attributes)
    weights = {f"x{i}": given[f"x{i}"] for i in known if f"x{i}" in given}
    feeds = {n: a for n, a in given.items() if n not in weights}
    inputs = {n: (a.dtype, a.shape) for n, a in feeds.items()}
    return save(folder / f"{kind}.onnx", [node], inputs, results, weights, 17), feeds


def contrib(
    folder: Path,
    kind: str,
    arrays: Arrays,
    outputs: int = 1,
    known: tuple[int, ...] = (),
    step: int = 0,
    atol: float = 2e-5,
    **attributes: Any,
) -> list[NDArray[Any]]:
    """Demand what onnxruntime computes: within `atol`, quantised results within `step` and nearly always equal."""
    path, feeds = model(folder, kind, arrays, outputs, known, **attributes)
    results = run(import_model(path), folder, feeds)
    for result, wanted in zip(results, onnxruntime(path, feeds), strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if result.dtype.kind in "iu":
            distance = np.abs(result.astype(np.int64) - wanted.astype(np.int64))
            assert distance.max(initial=0) <= step
            assert np.count_nonzero(distance) <= 0.05 * distance.size
        else:
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=atol)
    return results


U8, S8 = "uint8", "int8"
SHAPES = [((3, 5, 7), (3, 5, 7)), ((2, 3, 7), (7,)), ((1,), (1,)), ((2, 1, 33), (3, 1))]


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("ttype", [U8, S8])
def test_sums_and_products(tmp_path: Path, kind: str, a: tuple[int, ...], b: tuple[int, ...], ttype: str) -> None:
    x, y = integers(ttype, *a), integers(ttype, *b, seed=1)
    za, zb, zc = np.array(5, ttype), np.array(-7 if ttype == S8 else 130, ttype), np.array(9, ttype)
    for scale in (0.9, 0.01):  # the second saturates nearly everything
        arrays: Arrays = [x, f(0.3), za, y, f(0.7), zb, f(scale if kind == "QLinearAdd" else 60 * scale), zc]
        contrib(tmp_path, kind, arrays, step=1)
    zero, results = np.zeros((), ttype), []
    for zeros in ([None] * 3, [zero] * 3):
        path, feeds = model(tmp_path, kind, [x, f(0.3), zeros[0], y, f(0.7), zeros[1], f(0.9), zeros[2]], 1, ())
        results += run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(*results)


def test_ties_are_rounded_to_even(tmp_path: Path) -> None:
    x = np.arange(-9, 10, dtype=np.int8)
    zero = np.zeros((), np.int8)
    (total,) = contrib(tmp_path, "QLinearAdd", [x, f(0.5), zero, zero[None], f(1), zero, f(1), zero])
    np.testing.assert_array_equal(total, np.round(x / 2))
    (product,) = contrib(tmp_path, "QLinearMul", [x, f(0.5), zero, zero[None] + 1, f(1), zero, f(1), zero])
    np.testing.assert_array_equal(product, np.round(x / 2))


@pytest.mark.parametrize("ttype", [U8, S8])
@pytest.mark.parametrize(
    ("kind", "scale", "options"),
    [
        ("QLinearSigmoid", 1 / 256, {}),
        ("QLinearLeakyRelu", 0.04, {"alpha": 0.1}),
        ("QLinearLeakyRelu", 0.04, {}),
        ("QLinearSoftmax", 1 / 256, {"axis": -1, "opset": 13}),
        ("QLinearSoftmax", 1 / 256, {"axis": 1, "opset": 12}),
        ("QLinearSoftmax", 1 / 256, {"axis": 1, "opset": 13}),
    ],
)
def test_activations(tmp_path: Path, ttype: str, kind: str, scale: float, options: dict[str, Any]) -> None:
    zero = np.array(0 if ttype == U8 else -128, ttype)
    for shape in ((2, 3, 5), (1, 2, 3)):
        x = integers(ttype, *shape)
        contrib(
            tmp_path, kind, [x, f(0.05), np.array(11, ttype), f(scale), zero], known=(1, 2, 3, 4), step=1, **options
        )


@pytest.mark.parametrize("ttype", [U8, S8])
@pytest.mark.parametrize("last", [0, 1])
def test_pooling(tmp_path: Path, ttype: str, last: int) -> None:
    for shape in ((2, 3, 5, 7), (1, 1, 1, 1)):
        x = integers(ttype, *shape)
        quantisation: Arrays = [f(0.05), np.array(11, ttype), f(0.0213), np.array(3, ttype)]
        arrays: Arrays = [x, *quantisation]
        contrib(tmp_path, "QLinearGlobalAveragePool", arrays, known=(1, 2, 3, 4), step=1, channels_last=last)
        kernel = {"kernel_shape": [1, 1]} if shape[0] == 1 else {"kernel_shape": [3, 2], "strides": [2, 1]}
        padding = {} if shape[0] == 1 else {"pads": [1, 0, 1, 1]}
        for counted in (0, 1):
            options = {**kernel, **padding, "count_include_pad": counted, "channels_last": last}
            contrib(tmp_path, "QLinearAveragePool", arrays, known=(1, 2, 3, 4), step=1, **options)


@pytest.mark.parametrize("ttype", [U8, S8])
def test_parts_of_other_scales_are_joined(tmp_path: Path, ttype: str) -> None:
    zero = np.array(7, ttype)
    parts = [(integers(ttype, 2, n, 3), f(0.1 * n), np.array(n, ttype)) for n in (1, 4, 2)]
    arrays: Arrays = [f(0.17), zero, *(array for part in parts for array in part)]
    known = tuple(i for i in range(len(arrays)) if i < 2 or i % 3 != 2)
    contrib(tmp_path, "QLinearConcat", arrays, known=known, step=1, axis=1)


def test_a_quantised_choice(tmp_path: Path) -> None:
    x, y = integers(U8, 3, 5), integers(U8, 5, seed=1)
    zero = np.array(7, np.uint8)
    arrays: Arrays = [normal(3, 1) > 0, x, f(0.1), zero, y, f(0.3), zero, f(0.2), zero]
    contrib(tmp_path, "QLinearWhere", arrays, known=(2, 3, 5, 6, 7, 8), step=1)


@pytest.mark.parametrize(("left", "right"), [(U8, S8), (S8, S8), (U8, U8)])
@pytest.mark.parametrize("columns", [False, True])
def test_products_in_single_precision(tmp_path: Path, left: str, right: str, columns: bool) -> None:
    for a, b in (((3, 5), (5, 7)), ((2, 3, 9), (9, 4)), ((1, 1), (1, 1))):
        x, y = integers(left, *a) // 2, integers(right, *b, seed=1) // 2
        scale = np.abs(normal(b[-1])) + np.float32(0.1) if columns else f(0.2)
        za, zb = np.array(3, left), integers(right, b[-1], seed=2) // 4 if columns else np.array(5, right)
        for bias in (None, normal(b[-1])):
            arrays: Arrays = [x, y, f(0.03), scale, za, zb, bias]
            contrib(tmp_path, "MatMulIntegerToFloat", arrays, known=(1, 3, 5, 6), atol=1e-3)
            dynamic: Arrays = [normal(*a), y, scale, zb, bias]
            contrib(tmp_path, "DynamicQuantizeMatMul", dynamic, known=(1, 2, 3, 4), atol=1e-3)
        contrib(tmp_path, "MatMulIntegerToFloat", [x, y, f(0.03), scale], known=(1,), atol=1e-3)


@pytest.mark.parametrize("flips", [(0, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("ttype", [U8, S8])
@pytest.mark.parametrize("columns", [False, True])
def test_qgemm(tmp_path: Path, flips: tuple[int, int], ttype: str, columns: bool) -> None:
    a, b = integers(ttype, *((5, 3) if flips[0] else (3, 5))) // 2, integers(S8, *((4, 5) if flips[1] else (5, 4))) // 2
    scale, zb = (np.abs(normal(4)) + np.float32(0.1), np.zeros(4, np.int8)) if columns else (f(0.2), np.array(5, S8))
    za, options = np.array(11, ttype), {"transA": flips[0], "transB": flips[1], "alpha": 0.5}
    for c in (None, integers("int16", 4).astype(np.int32), integers("int16", 3, 1).astype(np.int32)):
        arrays: Arrays = [a, f(0.3), za, b, scale, zb, c]
        contrib(tmp_path, "QGemm", arrays, known=(1, 2, 4, 5), atol=1e-2, **options)
        quantised: Arrays = [*arrays, f(90), np.array(17, ttype)]
        contrib(tmp_path, "QGemm", quantised, known=(1, 2, 4, 5, 7, 8), step=1, **options)


def test_a_quantised_convolution_with_channels_last(tmp_path: Path) -> None:
    x, w = integers(U8, 1, 5, 6, 3), integers(S8, 4, 3, 3, 2) // 2
    zeros = np.array(100, np.uint8), np.array(0, np.int8), np.array(5, np.uint8)
    arrays: Arrays = [
        x,
        f(0.02),
        zeros[0],
        w,
        f(0.03),
        zeros[1],
        f(0.7),
        zeros[2],
        integers("int16", 4).astype(np.int32),
    ]
    contrib(tmp_path, "QLinearConv", arrays, known=tuple(range(1, 9)), channels_last=1, pads=[1, 0, 1, 1])


@pytest.mark.parametrize("kind", ["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
def test_gelu(tmp_path: Path, kind: str) -> None:
    x, bias = 3 * normal(2, 3, 5), normal(5)
    if kind != "BiasGelu":
        contrib(tmp_path, kind, [x], **({"alpha": 0.5} if kind == "QuickGelu" else {}))
    if kind in ("BiasGelu", "FastGelu"):
        contrib(tmp_path, kind, [x, bias])


@pytest.mark.parametrize("options", [{}, {"transA": 1}, {"transB": 1, "alpha": 0.5}, {"transBatchA": 1, "transA": 1}])
def test_fused_matmul(tmp_path: Path, options: dict[str, Any]) -> None:
    a, b = normal(2, 3, 5), normal(2, 5, 4, seed=1)
    a = a.transpose(0, 2, 1) if options.get("transA") else a
    b = b.transpose(0, 2, 1) if options.get("transB") else b
    a = np.moveaxis(a, 0, -2) if options.get("transBatchA") else a
    contrib(tmp_path, "FusedMatMul", [np.ascontiguousarray(a), np.ascontiguousarray(b)], **options)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("Relu", []),
        ("Sigmoid", []),
        ("Tanh", []),
        ("LeakyRelu", [0.3]),
        ("Clip", [-0.1, 0.2]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
def test_fused_activations(tmp_path: Path, kind: str, parameters: list[float]) -> None:
    x, w, b, z = normal(1, 3, 5, 6), normal(4, 3, 3, 3), normal(4), normal(1, 4, 5, 4)
    options = {"activation": kind, "pads": [1, 0, 1, 0], **({"activation_params": parameters} if parameters else {})}
    for arrays in ([x, w, b], [x, w, b, z], [x, w]):
        contrib(tmp_path, "FusedConv", [*arrays], **options)
    if kind != "Clip":
        names = dict(zip(("activation_alpha", "activation_beta"), parameters, strict=False))
        a, c = normal(3, 5), normal(4)
        contrib(tmp_path, "FusedGemm", [a, normal(5, 4), c], activation=kind, alpha=0.5, beta=2.0, **names)
        contrib(tmp_path, "FusedGemm", [a, normal(4, 5)], activation=kind, transB=1, **names)


@pytest.mark.parametrize("shape", [(2, 3, 8), (1, 1, 5)])
def test_normalised_sums(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x, gamma, beta, bias = normal(*shape), normal(shape[-1]), normal(shape[-1], seed=1), normal(shape[-1], seed=2)
    for skip in (normal(*shape, seed=3), normal(1, *shape[1:], seed=3), normal(*shape[1:], seed=3)):
        for arrays in ([gamma], [gamma, beta], [gamma, beta, bias], [gamma, None, bias]):
            contrib(tmp_path, "SkipLayerNormalization", [x, skip, *arrays], epsilon=1e-5)
        for arrays in ([gamma], [gamma, bias]):
            contrib(tmp_path, "SkipSimplifiedLayerNormalization", [x, skip, *arrays], epsilon=1e-5)
    path, feeds = model(tmp_path, "SkipLayerNormalization", [x, x, gamma], 4, (), epsilon=1e-5)
    np.testing.assert_allclose(run(import_model(path), tmp_path, feeds)[3], x + x)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("positions", [False, True])
def test_embeddings(tmp_path: Path, segments: bool, mask: bool, positions: bool) -> None:
    rng = np.random.default_rng(0)
    ids, where = rng.integers(0, 9, (2, 3), np.int32), rng.integers(0, 6, (2, 3), np.int32)
    arrays: Arrays = [
        ids,
        ids % 2 if segments else None,
        normal(9, 8),
        normal(6, 8),
        normal(2, 8) if segments else None,
        normal(8),
        normal(8, seed=1),
        (where > 2).astype(np.int32) if mask else None,
        where if positions else None,
    ]
    contrib(tmp_path, "EmbedLayerNormalization", arrays, outputs=3, known=(2, 3, 4, 5, 6), epsilon=1e-5)


def test_embeddings_of_small_integers(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 9, (2, 3), np.int32)
    tables = [integers(U8, *shape, seed=n) for n, shape in enumerate(((9, 8), (6, 8), (2, 8), (8,), (8,)))]
    scales, zeros = [f(0.01 * n) for n in range(1, 6)], [np.array(120 + n, np.uint8) for n in range(5)]
    arrays: Arrays = [ids, ids % 2, *tables, None, *scales, *zeros]
    contrib(tmp_path, "QEmbedLayerNormalization", arrays, outputs=2, known=tuple(range(2, 18)), epsilon=1e-5)


MASKS: dict[str, Any] = {
    "none": None,
    "lengths": np.array([3, 5], np.int32),
    "ranges": np.array([3, 5, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1, 1], [1, 0, 0, 1, 1]], np.int32),
    "pairs": (np.random.default_rng(1).random((2, 5, 5)) > 0.3).astype(np.int32) | np.eye(5, dtype=np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(tmp_path: Path, mask: str, unidirectional: int) -> None:
    x, w, b = normal(2, 5, 8), normal(8, 24), normal(24)
    options = {"num_heads": 2, "unidirectional": unidirectional}
    contrib(tmp_path, "Attention", [x, w, b, MASKS[mask]], known=(1, 2), **options)
    arrays: Arrays = [
        integers(U8, 2, 5, 8),
        integers(S8, 8, 24) // 2,
        b,
        f(0.02),
        f(0.01),
        MASKS[mask],
        np.array(120, U8),
    ]
    contrib(tmp_path, "QAttention", [*arrays, np.array(0, S8)], known=(1, 2, 3, 4, 6, 7), atol=1e-3, **options)


def test_attention_with_a_cache_and_other_sizes(tmp_path: Path) -> None:
    x, w, b, past = normal(2, 3, 8), normal(8, 24), normal(24), normal(2, 2, 2, 4, 4)
    contrib(tmp_path, "Attention", [x, w, b, None, past], outputs=2, num_heads=2, unidirectional=1)
    mask = np.ones((2, 7), np.int32)
    mask[0, :2] = 0
    contrib(tmp_path, "Attention", [x, w, b, mask, past], outputs=2, num_heads=2, scale=0.3)
    contrib(
        tmp_path,
        "Attention",
        [x, normal(8, 22), normal(22), None, None, normal(2, 2, 3, 3)],
        num_heads=2,
        qkv_hidden_sizes=[8, 8, 6],
    )
    columns: Arrays = [integers(U8, 2, 3, 8), integers(S8, 8, 24) // 2, b, f(0.02), np.abs(normal(24)) / 50, None]
    zeros: Arrays = [np.array(120, U8), np.zeros(24, S8), past]
    contrib(
        tmp_path,
        "QAttention",
        [*columns, *zeros],
        outputs=2,
        known=(1, 2, 3, 4, 6, 7),
        atol=1e-3,
        num_heads=2,
        unidirectional=1,
    )


@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_attention(tmp_path: Path, mask: str, bias: bool) -> None:
    q, k, v = normal(2, 3, 8), normal(2, 5, 8, seed=1), normal(2, 5, 6, seed=2)
    arrays: Arrays = [q, k, v, normal(22) if bias else None, MASKS[mask]]
    contrib(tmp_path, "MultiHeadAttention", arrays, num_heads=2)
    contrib(tmp_path, "MultiHeadAttention", [*arrays, normal(1, 2, 3, 5)], num_heads=2, scale=0.3)


def test_multi_head_attention_in_heads_and_with_a_cache(tmp_path: Path) -> None:
    q, k, v = normal(2, 3, 8), normal(2, 3, 8, seed=1), normal(2, 3, 8, seed=2)
    past = normal(2, 2, 4, 4, seed=3), normal(2, 2, 4, 4, seed=4)
    cached: Arrays = [q, k, v, None, None, None, *past]
    contrib(tmp_path, "MultiHeadAttention", cached, outputs=3, num_heads=2, unidirectional=1)
    contrib(tmp_path, "MultiHeadAttention", [q, *past], num_heads=2)
    contrib(tmp_path, "MultiHeadAttention", [normal(1, 1, 3), normal(1, 1, 3), normal(1, 1, 3)], num_heads=1)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([2], np.int64), np.array([[0, 3, 2], [5, 1, 4]], np.int64)])
def test_rotary_embedding(tmp_path: Path, interleaved: int, positions: NDArray[Any]) -> None:
    tables = normal(6, 4), normal(6, 4, seed=1)
    for x in (normal(2, 3, 16), normal(2, 2, 3, 8)):
        contrib(tmp_path, "RotaryEmbedding", [x, positions, *tables], interleaved=interleaved)
    half = normal(6, 2), normal(6, 2, seed=1)
    options = {"num_heads": 2, "rotary_embedding_dim": 4, "interleaved": interleaved}
    contrib(tmp_path, "RotaryEmbedding", [normal(2, 3, 16), positions, *half], **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"do_rotary": 1}, {"softcap": 2.0, "local_window_size": 5}, {"local_window_size": 2}, {"scale": 0.2}],
)
@pytest.mark.parametrize("tokens", [("prompt", 5, [4, 4]), ("padded prompt", 5, [0, 3]), ("step", 1, [4, 6])])
def test_group_query_attention(tmp_path: Path, options: dict[str, Any], tokens: tuple[str, int, list[int]]) -> None:
    _, s, last = tokens
    q, k, v = normal(2, s, 64), normal(2, s, 32, seed=1), normal(2, s, 32, seed=2)
    step = s == 1
    past: Arrays = [normal(2, 2, 6, 16, seed=3), normal(2, 2, 6, 16, seed=4)] if step else [None, None]
    total = np.array(7 if step else s, np.int32)
    tables: Arrays = [normal(9, 8, seed=5), normal(9, 8, seed=6)] if options.get("do_rotary") else []
    shared: Arrays = [*past, np.array(last, np.int32), total, *tables]
    named = {"num_heads": 4, "kv_num_heads": 2, **options}
    for given in ([q, k, v], [np.concatenate([q, k, v], 2), None, None]):
        path, feeds = model(tmp_path, "GroupQueryAttention", [*given, *shared], 3, (6,), **named)
        for result, other in zip(run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("bits", "zeros"),  # onnxruntime has no kernel of 8 bits with zero points in floats
    [(4, "none"), (4, "packed"), (4, "float"), (8, "none"), (8, "packed")],
)
@pytest.mark.parametrize("sizes", [(3, 5, 32, 16), (1, 3, 70, 16), (2, 4, 64, 32)])
def test_weights_of_few_bits(tmp_path: Path, bits: int, zeros: str, sizes: tuple[int, int, int, int]) -> None:
    m, n, k, block = sizes
    blocks = -(-k // block)
    packed, scales = integers(U8, n, blocks, block * bits // 8), np.abs(normal(n, blocks)) / 50
    points = {
        "none": None,
        "packed": integers(U8, n, -(-blocks * bits // 8)),
        "float": (normal(n, blocks, seed=2) + 8).astype(np.float32),
    }[zeros]
    arrays: Arrays = [normal(2, m, k), packed, scales, points, None, normal(n)]
    options = {"K": k, "N": n, "bits": bits, "block_size": block}
    contrib(tmp_path, "MatMulNBits", arrays, known=(1, 2, 3, 5), atol=1e-3, **options)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("rows", [False, True])
def test_an_lstm_of_integers(tmp_path: Path, direction: str, rows: bool) -> None:
    d, t, b, i, h = (2 if direction == "bidirectional" else 1), 3, 2, 5, 4
    weights = [integers(S8, d, i, 4 * h) // 2, integers(S8, d, h, 4 * h, seed=1) // 2]
    scales = [np.abs(normal(d, 4 * h, seed=n)) / 100 if rows else np.full(d, 0.01, np.float32) for n in (1, 2)]
    zeros = [np.zeros(scale.shape, np.int8) for scale in scales]
    states = [normal(d, 8 * h), np.array([3, 2], np.int32), normal(d, b, h), normal(d, b, h, seed=1), normal(d, 3 * h)]
    for full in (False, True):
        arrays: Arrays = [normal(t, b, i), *weights, *(states if full else [None] * 5)]
        arrays += [scales[0], zeros[0], scales[1], zeros[1]]
        options = {"direction": direction, "hidden_size": h, "outputs": 3}
        # onnxruntime has zeros behind the ends of sequences that it reads backwards, and they are in its range.
        atol = 4e-3 if full and direction != "forward" else 1e-6
        contrib(tmp_path, "DynamicQuantizeLSTM", arrays, known=(1, 2, 8, 9, 10, 11), atol=atol, **options)


def test_a_fourier_transform_of_real_numbers_which_onnxruntime_has_on_gpus_only(tmp_path: Path) -> None:
    for shape in ((2, 3, 8), (1, 5)):
        x = normal(*shape)
        path, feeds = model(tmp_path, "Rfft", [x], 1, (), normalized=0, onesided=1, signal_ndim=1)
        (result,) = run(import_model(path), tmp_path, feeds)
        wanted = np.fft.rfft(x.astype(np.float64))
        np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "arrays", "options", "message"),
    [
        ("QLinearAdd", [integers(U8, 3), f(1), None, normal(3), f(1), None, f(1)], {}, "an input of type f32"),
        ("BiasGelu", [normal(3), normal(3, dtype="float64")], {}, "f32 meets f64"),
        ("QLinearConcat", [f(1), np.uint8(0), integers(U8, 3)], {}, "3 inputs"),
        (
            "MatMulNBits",
            [normal(3, 32), integers(U8, 4, 2, 8), normal(4, 3)],
            {"K": 32, "N": 4, "block_size": 16},
            "scales",
        ),
        ("Attention", [normal(2, 3, 8), normal(8, 24), normal(24)], {"num_heads": 3}, "8 channels in 3 heads"),
    ],
)
def test_operands_that_do_not_fit(
    tmp_path: Path, kind: str, arrays: Arrays, options: dict[str, Any], message: str
) -> None:
    path, _ = model(tmp_path, kind, arrays, 1, (), **options)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_what_has_no_expression_is_refused_by_its_attribute(tmp_path: Path) -> None:
    arrays: Arrays = [normal(2, 3, 8), normal(8, 24), normal(24)]
    path, _ = model(tmp_path, "Attention", arrays, 1, (), num_heads=2, do_rotary=1)
    with pytest.raises(UnsupportedError, match="the attribute 'do_rotary' is 1"):
        import_model(path)
    path, _ = model(tmp_path, "CDist", [normal(2, 3), normal(4, 3)], 1, ())
    with pytest.raises(UnsupportedError, match="no tensor expression for this operator yet"):
        import_model(path)
