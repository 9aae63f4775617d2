from __future__ import annotations

import pytest

from bounds.graphs import attention, graph, mlp
from tilec.bounds.graph.contractions import contractions, lettered
from tilec.errors import UsageError

SQUARE = {"m": 4, "n": 4, "k": 4}


def test_equal_contractions_count_once_whatever_their_names() -> None:
    inputs = dict.fromkeys("abcd", (4, 4))
    nodes = [
        ("e[m, n] = sum(k, a[m, k] * b[k, n])", SQUARE),
        ("f[i, j] = sum(l, e[i, l] * c[l, j])", {"i": 4, "j": 4, "l": 4}),
        ("g[m, n] = sum(k, f[m, k] * d[n, k])", SQUARE),
    ]
    assert [(c.name, len(c.nodes)) for c in contractions(graph(inputs, nodes, ["g"]))] == [("e", 2), ("g", 1)]
    typed = graph(inputs, [nodes[0], ("f[m, n] = sum(k, a[m, k] * f32(c[k, n]))", SQUARE)], ["e", "f"], {"c": "f16"})
    assert [(c.name, len(c.nodes)) for c in contractions(typed)] == [("e", 1), ("f", 1)]


def test_only_sums_of_products_of_different_accesses_are_contractions() -> None:
    inputs = {"a": (4, 4), "b": (4,)}
    nodes = [
        ("mean[i] = sum(r, a[i, r])", {"i": 4, "r": 4}),
        ("square[i] = sum(r, a[i, r] * a[i, r])", {"i": 4, "r": 4}),
        ("variance[i] = sum(r, (a[i, r] - b[i]) * (a[i, r] - b[i]))", {"i": 4, "r": 4}),
        ("scaled[i] = sum(r, a[i, r] * 2.0)", {"i": 4, "r": 4}),
        ("largest[i] = max(r, a[i, r] * b[r])", {"i": 4, "r": 4}),
        ("plain[i, j] = a[i, j] * b[j]", {"i": 4, "j": 4}),
        ("dot[i] = sum(r, a[i, r] * b[r])", {"i": 4, "r": 4}),
        ("window[i] = sum(r, where(i + r < 4, b[i + r], 0.0) * a[0, r])", {"i": 4, "r": 2}),
    ]
    outputs = [text.split("[")[0] for text, _ in nodes]
    assert [c.name for c in contractions(graph(inputs, nodes, outputs))] == ["dot", "window"]


def test_bits_come_from_types() -> None:
    node = ("e[m, n] = sum(k, f32(a[m, k]) * f32(b[k, n]))", SQUARE)
    (first,) = contractions(graph({"a": (4, 4), "b": (4, 4)}, [node], ["e"], {"a": "f16", "b": "i8"}))
    assert [operand.bits for operand in first.einsum.operands] == [16, 8, 32]


def test_networks() -> None:
    assert [(c.name, len(c.nodes)) for c in contractions(attention())] == [("p", 2), ("s", 1), ("c", 1)]
    assert [c.name for c in contractions(mlp())] == ["h", "y"]


def test_sizes_must_be_bound() -> None:
    open_ = graph({"a": (4, 4)}, [("e[m, n] = a[m, n]", {"m": 4, "n": 4})], ["e"], symbols=["batch"])
    with pytest.raises(UsageError, match="sizes batch are not bound\n  Bind them: --shape batch=SIZE"):
        contractions(open_)


def test_letters_for_people() -> None:
    node = ("result[m, n] = sum(k, f32(left_one[m, k]) * right[k, n] * right[k, n])", SQUARE)
    found = graph({"left_one": (4, 4), "right": (4, 4)}, [node], ["result"], {"left_one": "f16"})
    einsum = lettered(contractions(found)[0], found)
    assert einsum.text == "O[m, n] = sum(k, f32(A[m, k]) * B[k, n] * B[k, n])"
    assert [(operand.tensor, operand.bits) for operand in einsum.operands] == [("A", 16), ("B", 32), ("O", 32)]
