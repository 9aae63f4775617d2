"""What is compiled, checked and timed on a card: kernels of every class, and whole models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.on_gpu.case import Case, Torch

MODELS = ("bert-base", "resnet-50", "mobilenet-v2", "vit-b16", "gpt2")
"""Models that are compared with torch.compile."""

LAYERS = ("llama-layer-decode", "llama-layer-prefill")

MORE = (
    ("vit-s32", "f16"),
    ("unet", "f16"),
    ("shufflenet-v2", "f32"),
    ("nafnet", "f32"),
    ("nerf-mlp", "f32"),
)
"""Models that are checked and timed alone."""

FUSED = (("bert-base", "f16"), ("resnet-50", "f16"), ("mobilenet-v2", "f32"), ("vit-b16", "f16"), ("nafnet", "f32"))
"""Models that are compiled with less fusion too."""


COUNTED = (
    "gemm-4096x4096x4096-f16",
    "gemm-1024x3072x768-f16",
    "gemm-2048x2048x2048-f32",
    "conv-3x3-16x28x128-128-f16",
    "attention-in-parts-12x1024x64-f16",
    "attention-12x1024x64-f16",
    "decode-32-8x4096x128-f16",
    "transpose-4096x4096-f16",
    "sum-columns-8192x4096-f32",
    "w4-256x4096x4096-f16",
    "llama-70b-1x8192x8192-nf4",
    "llama-70b-1x8192x8192-i4",
    "gelu-8192x3072-f16",
    "softmax-12288x1024-f16",
)
"""Cases whose kernels Nsight Compute counts."""

PROFILED = (
    "gemm-1024x3072x768-f16",
    "gemm-1024x3072x768-f32",
    "gemm-128x768x3072-f16",
    "conv-3x3-1x28x128-128-f16",
    "conv-3x3-16x28x128-128-f16",
    "conv-1x1-1x14x1024-256-f16",
    "attention-in-parts-12x1024x64-f16",
    "layer-norm-8192x768-f16",
    "softmax-12288x1024-f16",
    "gelu-8192x3072-f16",
    "transpose-4096x4096-f16",
    "sum-columns-8192x4096-f32",
    "gemv-1x8192x8192-f16",
    "gemm-1000x1000x1000-f16",
)
"""Cases whose candidates are timed."""


def cases(words: Iterable[str] = ()) -> list[Case]:
    """All cases whose name, family or type every word is part of."""
    every = [*anchors(), *few_bits(), *shared_inputs(), *models()]
    return [each for each in every if all(w in each.name or w in (each.family, each.ttype) for w in words)]


def anchors() -> Iterator[Case]:
    """One kernel each."""
    yield from _products()
    yield from _convolutions()
    yield from _attention()
    yield from _rows()
    yield from _elements()


def models() -> Iterator[Case]:
    """Models of the zoo, some with less fusion."""
    for name in (*MODELS, *LAYERS):
        for ttype in ("f16", "f32"):
            yield Case(f"{name}-{ttype}", "model", ttype, zoo=name)
    for name, ttype in MORE:
        yield Case(f"{name}-{ttype}", "model", ttype, zoo=name)
    for name, ttype in FUSED:
        for fusion in ("none", "register"):
            recipe = f"schedule: {{fusion: {fusion}}}\n"
            yield Case(f"{name}-{ttype}-{fusion}", "fusion", ttype, zoo=name, recipe=recipe)


def _products() -> Iterator[Case]:
    for ttype, m, n, k in (
        ("f32", 1024, 3072, 768),
        ("f32", 2048, 2048, 2048),
        ("f32", 128, 3072, 768),
        ("f16", 1024, 3072, 768),
        ("f16", 4096, 4096, 4096),
        ("f16", 8192, 8192, 8192),
        ("f16", 128, 768, 3072),
        ("f16", 1000, 1000, 1000),
        ("f16", 64, 512, 16384),
        ("f32", 1, 2048, 5632),
        ("f16", 1, 2048, 5632),
        ("f16", 1, 8192, 8192),
    ):
        yield Case(
            f"{'gemv' if m == 1 else 'gemm'}-{m}x{n}x{k}-{ttype}",
            "GEMV" if m == 1 else "GEMM",
            ttype,
            f"(T[{m}, {k}] x) => (T[{m}, {n}] y) {{ p = MatMul(x, w) s = Add(p, b) y = Relu(s) }}",
            {"w": (k, n), "b": (n,)},
            reference=lambda torch, v: torch.relu(v.x @ v.w + v.b),
            peer=lambda torch, v: v.x @ v.w,
            note="the product alone",
        )
    weight = np.random.default_rng(2).integers(-100, 100, (2048, 2048)).astype(np.int8)
    yield Case(
        "gemm-2048x2048x2048-i8",
        "GEMM",
        "i8",
        "(int8[2048, 2048] x) => (int32[2048, 2048] y) { y = MatMulInteger(x, w) }",
        fixed={"w": weight},
        reference=lambda torch, v: v.x @ v.w,
        peer=_integers,
        note="torch._int_mm",
    )


def _integers(torch: Any, v: SimpleNamespace) -> Any:
    if not hasattr(v, "columns"):
        v.columns = v.w.t().contiguous().t()
    return torch._int_mm(v.x, v.columns)


def _convolutions() -> Iterator[Case]:
    for name, ttype, batch, pixels, channels, maps, kernel, stride, groups in (
        ("3x3", "f32", 1, 28, 128, 128, 3, 1, 1),
        ("3x3", "f16", 1, 28, 128, 128, 3, 1, 1),
        ("3x3", "f16", 1, 56, 64, 64, 3, 1, 1),
        ("3x3", "f16", 16, 28, 128, 128, 3, 1, 1),
        ("1x1", "f16", 1, 14, 1024, 256, 1, 1, 1),
        ("1x1", "f32", 1, 56, 64, 256, 1, 1, 1),
        ("7x7", "f16", 1, 224, 3, 64, 7, 2, 1),
        ("depthwise", "f16", 1, 56, 144, 144, 3, 1, 144),
        ("depthwise", "f32", 1, 112, 96, 96, 3, 1, 96),
    ):
        out, pad = -(-pixels // stride), kernel // 2
        how = f"strides=[{stride}, {stride}], pads=[{pad}, {pad}, {pad}, {pad}], group={groups}"
        yield Case(
            f"conv-{name}-{batch}x{pixels}x{channels}-{maps}-{ttype}",
            "depthwise" if groups > 1 else "convolution",
            ttype,
            f"(T[{batch}, {channels}, {pixels}, {pixels}] x) => (T[{batch}, {maps}, {out}, {out}] y)"
            f" {{ c = Conv<{how}>(x, w, b) y = Relu(c) }}",
            {"w": (maps, channels // groups, kernel, kernel), "b": (maps,)},
            reference=_convolution(True, stride, pad, groups),
            peer=_convolution(False, stride, pad, groups),
            note=f"cuDNN, the convolution alone, {'channels last' if ttype == 'f16' else 'channels first'}",
        )


def _convolution(whole: bool, stride: int, pad: int, groups: int) -> Torch:
    def computed(torch: Any, v: SimpleNamespace) -> Any:
        y = torch.nn.functional.conv2d(v.x, v.w, v.b, stride, pad, 1, groups)
        return torch.relu(y) if whole else y

    return computed


def _attention() -> Iterator[Case]:
    for ttype, heads, tokens, size, mask in (
        ("f32", 12, 1024, 64, ""),
        ("f16", 12, 1024, 64, ""),
        ("f16", 16, 2048, 128, ""),
        ("f16", 12, 1024, 64, "causal"),
        ("f16", 32, 128, 64, "causal"),
    ):
        shape, causal = f"T[1, {heads}, {tokens}, {size}]", bool(mask)
        yield Case(
            f"attention-{heads}x{tokens}x{size}-{ttype}{'-causal' if causal else ''}",
            "attention",
            ttype,
            f"({shape} q, {shape} k, {shape} v) => ({shape} y) {{ y = Attention<is_causal={int(causal)}>(q, k, v) }}",
            reference=_attend(causal),
            peer=_attend(causal),
            note="scaled_dot_product_attention",
        )
    for ttype in ("f32", "f16"):
        yield _in_parts(ttype)
    for ttype, heads, groups, keys, size in (("f16", 32, 8, 4096, 128), ("f16", 32, 4, 2048, 64)):
        cache = f"T[1, {groups}, {keys}, {size}]"
        yield Case(
            f"decode-{heads}-{groups}x{keys}x{size}-{ttype}",
            "decode",
            ttype,
            f"(T[1, {heads}, 1, {size}] q, {cache} k, {cache} v) => (T[1, {heads}, 1, {size}] y)"
            " { y = Attention(q, k, v) }",
            reference=_attend(False, heads // groups),
            peer=_attend(False, heads // groups),
            note="scaled_dot_product_attention",
        )


def _in_parts(ttype: str) -> Case:
    """Attention as older models have it: products, a scale, Softmax."""
    shape = "T[1, 12, 1024, 64]"
    return Case(
        f"attention-in-parts-12x1024x64-{ttype}",
        "attention",
        ttype,
        f"({shape} q, {shape} k, {shape} v) => ({shape} y) {{ t = Transpose<perm=[0, 1, 3, 2]>(k)"
        " s = MatMul(q, t) m = Mul(s, c) p = Softmax(m) y = MatMul(p, v) }",
        fixed={"c": np.array(0.125, np.float16 if ttype == "f16" else np.float32)},
        reference=_attend(False),
        note="scaled_dot_product_attention",
    )


def _attend(causal: bool, queries: int = 1) -> Torch:
    def computed(torch: Any, v: SimpleNamespace) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(v.q, v.k, v.v, is_causal=causal, enable_gqa=queries > 1)

    return computed


def _rows() -> Iterator[Case]:
    for ttype in ("f32", "f16"):
        yield Case(
            f"layer-norm-8192x768-{ttype}",
            "norm",
            ttype,
            "(T[8192, 768] x) => (T[8192, 768] y) { y = LayerNormalization<axis=-1>(x, w, b) }",
            {"w": (768,), "b": (768,)},
            reference=lambda torch, v: torch.nn.functional.layer_norm(v.x, (768,), v.w, v.b),
        )
    yield Case(
        "rms-norm-4096x4096-f16",
        "norm",
        "f16",
        "(T[4096, 4096] x) => (T[4096, 4096] y) { y = RMSNormalization<axis=-1, epsilon=0.00001>(x, w) }",
        {"w": (4096,)},
        reference=lambda torch, v: torch.nn.functional.rms_norm(v.x, (4096,), v.w, 1e-5),
    )
    for ttype, rows, width in (("f32", 12288, 512), ("f16", 12288, 1024), ("f16", 2048, 16384)):
        yield Case(
            f"softmax-{rows}x{width}-{ttype}",
            "softmax",
            ttype,
            f"(T[{rows}, {width}] x) => (T[{rows}, {width}] y) {{ y = Softmax(x) }}",
            reference=lambda torch, v: torch.softmax(v.x, -1),
        )
    for name, axis, rest in (("rows", 1, 8192), ("columns", 0, 4096)):
        yield Case(
            f"sum-{name}-8192x4096-f32",
            "reduction",
            "f32",
            f"(T[8192, 4096] x) => (T[{rest}] y) {{ y = ReduceSum<keepdims=0>(x, a) }}",
            fixed={"a": np.array([axis], np.int64)},
            reference=_sum(axis),
        )


def _sum(axis: int) -> Torch:
    return lambda torch, v: v.x.sum(axis)


def _elements() -> Iterator[Case]:
    yield Case(
        "gelu-8192x3072-f16",
        "elementwise",
        "f16",
        "(T[8192, 3072] x) => (T[8192, 3072] y) { y = Gelu(x) }",
        reference=lambda torch, v: torch.nn.functional.gelu(v.x),
    )
    yield Case(
        "add-8192x4096-f32",
        "elementwise",
        "f32",
        "(T[8192, 4096] x, T[8192, 4096] z) => (T[8192, 4096] y) { y = Add(x, z) }",
        reference=lambda torch, v: v.x + v.z,
    )
    yield Case(
        "transpose-4096x4096-f16",
        "elementwise",
        "f16",
        "(T[4096, 4096] x) => (T[4096, 4096] y) { t = Transpose<perm=[1, 0]>(x) y = Relu(t) }",
        reference=lambda torch, v: torch.relu(v.x.t().contiguous()),
    )


def few_bits() -> Iterator[Case]:
    """Products with weights of few bits: MatMulNBits of 4096 x 4096, and those of LLaMA-2-70B by type and rows."""
    random = np.random.default_rng(3)
    packed = random.integers(0, 256, (4096, 128, 16)).astype(np.uint8)
    scales = (random.random((4096, 128), np.float32) / 256 + 1 / 512).astype(np.float16)
    for rows in (1, 32, 256):
        yield Case(
            f"w4-{rows}x4096x4096-f16",
            "few bits",
            "f16",
            f"(T[{rows}, 4096] x) => (T[{rows}, 4096] y)"
            " { y = com.microsoft.MatMulNBits<K=4096, N=4096, bits=4, block_size=32>(x, w, s) }",
            fixed={"w": packed, "s": scales},
            reference=_nibbles,
            peer=_dense(4096),
            note="the f16 product",
        )
    for k, n, rows, types in (
        (8192, 8192, 1, ("f16", "i8", "i4", "nf4")),
        (8192, 8192, 32, ("f16", "i8", "i4", "nf4")),
        (8192, 8192, 4096, ("f16", "i4")),
        (8192, 28672, 1, ("f16", "i4")),
        (28672, 8192, 1, ("f16", "i4")),
    ):
        for weight in types:
            yield Case(
                f"llama-70b-{rows}x{n}x{k}-{weight}",
                "few bits",
                "f16",
                f"(T[{rows}, {k}] x) => (T[{rows}, {n}] y) {{ y = MatMul(x, w) }}",
                {"w": (k, n)},
                reference=lambda torch, v: v.x @ v.w,
                note="the f16 product",
                recipe="" if weight == "f16" else f'types: {{"*": "{FORMS[weight]}"}}\n',
                form=FORMS.get(weight, ""),
            )


FORMS = {"i8": "i8[128]*f16", "i4": "i4[128]*f16", "nf4": "nf4[64]*f16"}
"""Type of a weight -> its format: elements, those that share a scale, the scale."""


def _nibbles(torch: Any, v: SimpleNamespace) -> Any:
    low, high = v.w.long() & 15, v.w.long() >> 4
    values = torch.stack([low, high], -1).reshape(4096, 128, 32).to(v.x.dtype) - 8
    return v.x @ (values * v.s.to(v.x.dtype)[:, :, None]).reshape(4096, 4096).t()


def _dense(width: int) -> Torch:
    def product(torch: Any, v: SimpleNamespace) -> Any:
        if not hasattr(v, "dense"):
            v.dense = torch.randn(width, width, device=v.x.device, dtype=v.x.dtype)
        return v.x @ v.dense

    return product


def shared_inputs() -> Iterator[Case]:
    """Several products and convolutions of one input."""
    parts = " ".join(f"{y} = MatMul(x, w{y})" for y in "qkv")
    yield Case(
        "qkv-128x768-f16",
        "shared input",
        "f16",
        f"(T[128, 768] x) => (T[128, 768] q, T[128, 768] k, T[128, 768] v) {{ {parts} }}",
        {f"w{y}": (768, 768) for y in "qkv"},
        reference=lambda torch, v: (v.x @ v.wq, v.x @ v.wk, v.x @ v.wv),
        note="three products",
    )
    yield Case(
        "branches-28x192-f16",
        "shared input",
        "f16",
        "(T[1, 192, 28, 28] x) => (T[1, 64, 28, 28] a, T[1, 96, 28, 28] b, T[1, 16, 28, 28] c)"
        " { ca = Conv(x, wa) a = Relu(ca) cb = Conv(x, wb) b = Relu(cb) cc = Conv(x, wc) c = Relu(cc) }",
        {"wa": (64, 192, 1, 1), "wb": (96, 192, 1, 1), "wc": (16, 192, 1, 1)},
        reference=lambda torch, v: tuple(torch.relu(torch.conv2d(v.x, w)) for w in (v.wa, v.wb, v.wc)),
        note="three convolutions and ReLUs",
    )


def case_named(name: str) -> Case:
    """The case of this name."""
    return next(each for each in cases() if each.name == name)
