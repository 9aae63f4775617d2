"""Attention."""

from __future__ import annotations

from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import REAL, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "attention": Function(F.scaled_dot_product_attention, tensors((2, 2, "n", 8), (2, 2, 5, 8), (2, 2, 5, 8)), REAL),
    "attention causal": Function(
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), normal(2, 2, "n", 8), REAL
    ),
    "attention masked": Function(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m > 0), tensors((2, 2, "n", 8), ("n", "n"))
    ),
    "attention biased": Function(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        tensors((2, 2, "n", 8), (2, 1, "n", "n")),
        REAL,
    ),
    "attention of groups": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        tensors((2, 4, "n", 8), (2, 2, 5, 8)),
        REAL,
    ),
    "attention of groups, causal": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True, is_causal=True),
        tensors((2, 6, "n", 8), (2, 2, "n", 8)),
    ),
    "attention of one head of keys": Function(
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m > 0, enable_gqa=True),
        tensors((2, 4, "n", 8), (2, 1, 5, 8), ("n", 5)),
    ),
    "attention of three dimensions": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3), tensors((2, "n", 8), (2, 5, 8))
    ),
    "attention of an open width": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k), tensors((2, 2, 4, "n"), (2, 2, 5, "n"))
    ),
    "attention with another width of values": Function(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v), tensors((2, 2, "n", 8), (2, 2, 5, 8), (2, 2, 5, 4))
    ),
    "multi_head_attention": Function(
        lambda x, w, o: F.multi_head_attention_forward(
            x, x, x, 8, 2, w, None, None, None, False, 0.0, o, None, training=False, need_weights=False
        )[0],
        tensors(("n", 2, 8), (24, 8), (8, 8)),
    ),
}
