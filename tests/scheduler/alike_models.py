"""Random models that share many parts in other surroundings: the same layer under other names, of other sizes, types
and constants, with other readers, kept or not."""

from __future__ import annotations

import random

from scheduler.graphs import make_graph

from tilec.ir.graph import Graph

ROWS, COLUMNS = (1, 24, 96, 97), (64, 96, 130)
"""Few, so that models have layers in common."""

LAYERS = {
    "product": ["{y}[s, n] = sum(k, {x}[s, k] * {w}[k, n])"],
    "turned product": ["{y}[s, n] = sum(k, {x}[s, k] * {w}[n, k])"],
    "own product": ["{a}[n, k] = sum(s, {x}[s, n] * {x}[s, k])", "{y}[s, n] = sum(k, {x}[s, k] * {a}[n, k])"],
    "bias": ["{y}[s, n] = {x}[s, n] + {b}[n]"],
    "relu": ["{y}[s, n] = where({x}[s, n] > {c}, {x}[s, n], 0.0)"],
    "scaled": ["{y}[s, n] = {x}[s, n] * {c}"],
    "exp": ["{y}[s, n] = exp({x}[s, n] * {c})"],
    "shift": ["{y}[s, n] = {x}[s, (n + {i}) % {n}]"],
    "backward": ["{y}[s, n] = {x}[s, {n} - 1 - n]"],
    "window": ["{y}[s, n] = sum(r, where(n + r >= {i} and n + r < {n} + {i}, {x}[s, n + r - {i}], 0.0))"],
    "softmax": [
        "{a}[s] = max(n, {x}[s, n])",
        "{d}[s, n] = exp({x}[s, n] - {a}[s])",
        "{e}[s] = sum(n, {d}[s, n])",
        "{y}[s, n] = {d}[s, n] / {e}[s]",
    ],
    "norm": [
        "{a}[s] = sum(n, {x}[s, n] * {x}[s, n])",
        "{y}[s, n] = {x}[s, n] / sqrt({a}[s] + {c})",
    ],
    "pieces": ["{a}[s, n] = {x}[s, n] * {v}[{r}, n]", "{y}[s, n] = {a}[s, n] + {v}[{r}, n + {p}]"],
    "columns": ["{a}[n] = sum(s, {x}[s, n])", "{y}[s, n] = {x}[s, n] - {a}[n]"],
}


def alike_model(draw: random.Random, prefix: str, open_rows: bool = False) -> Graph:
    """A model of three to six layers, which read the layer before or an earlier one of the same columns."""
    rows: int | str = "rows" if open_rows else draw.choice(ROWS)
    columns = draw.choice(COLUMNS)
    texts, weights, outputs = [], {}, []
    kind = draw.choice(["f32", "f32", "f32", "f16"])
    made, read = [f"{prefix}x"], set()
    for number in range(draw.randint(3, 6)):
        name, tensor = draw.choice(list(LAYERS)), f"{prefix}{number}"
        source = made[-1] if draw.random() < 0.8 else draw.choice(made)
        read.add(source)
        names = {letter: f"{tensor}{letter}" for letter in "yadewbv"}
        constants = {
            "c": draw.choice(["0.125", "0.5"]),
            "i": str(draw.choice([1, 2])),
            "n": str(columns),
            "r": "0" if open_rows else "s",
            "p": draw.choice(["0", "3", str(columns)]),
        }
        extents = {"s": rows, "n": columns, "k": columns, "r": 2 * int(constants["i"]) + 1}
        weights.update({names["w"]: (columns, columns)} if "product" in name and name != "own product" else {})
        weights.update({names["b"]: (columns,)} if name == "bias" else {})
        weights.update({names["v"]: (1 if isinstance(rows, str) else rows, 2 * columns)} if name == "pieces" else {})
        texts += [(text.format(x=source, **names, **constants), extents) for text in LAYERS[name]]
        if draw.random() < 0.2:
            outputs.append(names["y"])
        made.append(names["y"])
    outputs += [name for name in made[1:] if name not in read]
    symbols = ["rows"] if open_rows else []
    ttypes = dict.fromkeys((f"{prefix}x", *weights), kind)
    return make_graph({f"{prefix}x": (rows, columns)}, texts, list(dict.fromkeys(outputs)), weights, symbols, ttypes)
