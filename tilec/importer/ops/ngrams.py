"""TfIdfVectorizer over integers: every known n-gram is counted by comparing it at all positions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.importer.work_estimate import require_affordable
from tilec.ir.expr import Const, Expr


@operator("TfIdfVectorizer")
def _tf_idf(op: Op) -> Value:
    """Number of occurrences of each n-gram in a row, with up to `max_skip_count` elements skipped between its parts.

    IDF counts at most one occurrence; IDF and TFIDF are weighted.
    """
    x = op.value(0)
    pool = op.integers("pool_int64s")
    if pool is None:
        raise op.unsupported("n-grams of strings", "Map the strings to numbers outside the model.")
    if x.rank not in (1, 2):
        raise ShapeError(f"an input {shape_text(x.shape)} that is neither a row nor rows")
    mode = op.text("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise op.invalid(f"mode is {mode!r}", "It must be TF, IDF or TFIDF.")
    places = np.array(op.integers("ngram_indexes") or (), np.int64)
    if not places.size or places.min() < 0 or len(set(places.tolist())) < places.size:
        raise op.unsupported("n-grams that share a place in the output", "Give every n-gram an index of its own.")
    width = int(places.max()) + 1
    shape = (*x.shape[:-1], Const(width))
    total = op.full(shape, 0.0, "f32", part="none")
    for grams, numbers in _grams(op, pool):
        rows = np.zeros((width, grams.shape[1]), np.int64)
        listed = np.zeros(width, np.bool_)
        rows[places[numbers]], listed[places[numbers]] = grams, True
        counts = _counted(op, x, rows, listed)
        total = op.map("a + b", a=total, b=counts, part=f"upto{grams.shape[1]}")
    weights = np.array(op.attributes.get("weights") or np.ones(width), np.float32)
    if weights.size < width:
        raise op.invalid(f"{weights.size} weights for {width} outputs")
    if mode == "TF":
        return total
    factor = op.constant(weights[:width], "f32", part="weights")
    return op.map("where(a > 0.0, w, 0.0)" if mode == "IDF" else "a * w", a=total, w=factor)


def _grams(op: Op, pool: Sequence[int]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The n-grams of every requested length as rows, and their numbers among all n-grams."""
    starts = [*(op.integers("ngram_counts") or ()), len(pool)]
    if starts != sorted(starts) or starts[0] < 0 or op.integer("max_skip_count") < 0:
        raise op.invalid(f"n-grams that begin at {starts[:-1]} of {len(pool)}", "The places must rise inside the pool.")
    result, before = [], 0
    for length, (start, end) in enumerate(pairwise(starts), start=1):
        number = max(0, end - start) // length
        if number and op.integer("min_gram_length") <= length <= op.integer("max_gram_length"):
            rows = np.array(pool[start : start + number * length], np.int64).reshape(number, length)
            result.append((rows, np.arange(before, before + number)))
        before += number
    if before > len(op.integers("ngram_indexes") or ()):
        raise op.invalid(f"{before} n-grams in the pool and fewer ngram_indexes")
    return result


def _counted(op: Op, x: Value, grams: NDArray[np.int64], listed: NDArray[np.bool_]) -> Value:
    """Number of positions and distances at which each of the listed rows of `grams` occurs in x."""
    length = grams.shape[1]
    distances = 1 if length == 1 else op.integer("max_skip_count") + 1
    axes = op.axes_of([*x.shape[:-1], Const(len(grams))])
    start, skip = op.builder.iterators("rs", [x.shape[-1], Const(distances)])
    require_affordable(op, [*(a.extent for a in axes), start.extent, skip.extent])
    table = op.constant(grams, "i64", part=f"grams{length}")
    known = op.constant(listed, "bool", part=f"known{length}")
    batch, gram = [a.var for a in axes[:-1]], axes[-1].var
    hit: Expr = known.at([gram])
    for k in range(length):
        at = formula("r + k * (s + 1)", r=start.var, s=skip.var, k=k)
        element = formula("i64(x)", x=x.access([*batch, at]))
        hit = formula("c and x == g", c=hit, x=element, g=table.access([gram, Const(k)]))
    last = formula("r + k * (s + 1) < e", r=start.var, s=skip.var, k=length - 1, e=x.shape[-1])
    body = formula("where(inside, where(hit, 1.0, 0.0), 0.0)", inside=last, hit=hit)
    return op.emit(axes, body, "f32", [start, skip], part=f"count{length}")
