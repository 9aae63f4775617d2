"""Brute force for chains: templates run tile by tile over sets of elements, and every mapping that they allow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby, pairwise, product

from tilec.bounds.chain.buffer_requirement import Scheme
from tilec.bounds.chain.chain import Product, ProductChain

Tiles = tuple[int, int, int]
"""Tiles of m, k and n."""

LOOPS = {
    "Full": "m", "TiledK": "mk", "TiledN": "mn", "TiledKN": "mnk", "TiledNK": "mkn", "flash 1": "nm", "flash 2": "km",
}  # fmt: skip
"""The table of templates, loops outermost first."""


@cache
def run(operator: Product, loops: str, tiles: Tiles, kept: bool) -> tuple[int, int, int]:
    """Elements of I, W and O that one operator moves; other iterators than those of `loops` stay whole."""
    extents = {"m": operator.m, "k": operator.k, "n": operator.n}
    sizes = dict(zip("mkn", tiles, strict=True))
    inputs = weights = evicted = 0
    held_i, held_w, held_o = frozenset[object](), frozenset[object](), frozenset[object]()
    for starts in product(*(range(0, extents[dim], sizes[dim]) for dim in loops)):
        at = dict(zip(loops, starts, strict=True))
        span = {dim: range(at[dim], min(at[dim] + sizes[dim], extents[dim])) if dim in at else range(extents[dim])
                for dim in "mkn"}  # fmt: skip
        tile_i, tile_o = frozenset(product(span["m"], span["k"])), frozenset(product(span["m"], span["n"]))
        inputs += len(tile_i - held_i)
        evicted += len(tile_o - held_o)
        held_i, held_o = tile_i, tile_o
        for batch in sorted({row * operator.batches // operator.m for row in span["m"]}):
            tile_w = frozenset(product([batch], span["k"], span["n"]))
            weights += len(tile_w - held_w) if kept else len(tile_w)
            held_w = tile_w
    heads = operator.heads
    return heads * inputs, heads * weights, heads * (2 * evicted - operator.m * operator.n)


def positions(operators: tuple[Product, ...], fusion: str) -> Iterator[tuple[str, ...]]:
    """Which templates stand together in a chain."""
    middle = ("Full",) * (len(operators) - 2)
    rows = operators[0].rows
    if fusion == "flat":
        yield ("TiledK", *middle, "TiledN")
    if fusion == "ffmt" and len(operators) == 2:
        yield ("TiledKN" if rows == "free" else "TiledK"), "TiledNK"
    if fusion != "flat" and len(operators) > 2:
        yield ("TiledKN" if rows == "free" else "TiledK"), "TiledK", *middle[1:], "TiledN"
    if len(operators) == 2 and (fusion == "flash" or (fusion == "ffmt" and rows != "whole")):
        yield "flash 1", "flash 2"


def mappings(
    chain: ProductChain, fusion: str, sizes: Callable[[int], list[int]], scheme: Scheme = 1
) -> Iterator[tuple[int, int]]:
    """(bits of buffer, bits moved) of every mapping of a fused chain."""
    first, last = chain.operators[0], chain.operators[-1]
    for templates in positions(chain.operators, fusion):
        for rows in sizes(first.m):
            ways = []
            for operator, template in zip(chain.operators, templates, strict=True):
                inner = [
                    sizes(operator.k) if "k" in LOOPS[template] else [operator.k],
                    sizes(operator.n) if "n" in LOOPS[template] else [operator.n],
                ]
                ways.append([((rows, k, n), kept) for k in inner[0] for n in inner[1] for kept in (False, True)])
            for way in product(*ways):
                pairs = list(zip(chain.operators, way, strict=True))
                if any(
                    one.heads * tile[2] != other.heads * next_tile[1]
                    for (one, (tile, _)), (other, (next_tile, _)) in pairwise(pairs)
                ):
                    continue
                moved = 0
                for (operator, (tile, kept)), template in zip(pairs, templates, strict=True):
                    i, w, o = run(operator, LOOPS[template], tile, kept)
                    moved += w * operator.weight_bits
                    moved += i * operator.input_bits if operator is first else 0
                    moved += o * operator.output_bits if operator is last else 0
                yield room([(operator, tile, kept) for operator, (tile, kept) in pairs], scheme), moved


def beyond(chain: ProductChain, sizes: Callable[[int], list[int]]) -> Iterator[tuple[int, int]]:
    """The same of mappings that the templates leave out: every set of links that may be handed on in parts, tiles of
    any width where an operator has them, every W in passing or kept as a whole."""
    operators = chain.operators
    count = len(operators)
    for chosen in product((False, True), repeat=count - 1):
        parts = [link for link, passing in enumerate(chosen) if passing]
        if any(operators[link].rows != "free" or link + 1 in parts for link in parts):
            continue
        for rows in sizes(operators[0].m):
            ways = []
            for at, each in enumerate(operators):
                inner = at == 0 and at not in parts
                outer = at == count - 1 and at - 1 not in parts and each.rows == "free"
                ks = sizes(each.k) if inner or at - 1 in parts else [each.k]
                ns = sizes(each.n) if outer or at in parts else [each.n]
                ways.append([((rows, k, n), kept) for k in ks for n in ns for kept in (False, True)])
            for way in product(*ways):
                tiles = [tile for tile, _ in way]
                if any(operators[i].heads * tiles[i][2] != operators[i + 1].heads * tiles[i + 1][1]
                       for i in range(count - 1)):  # fmt: skip
                    continue
                yield _held(operators, tiles, [kept for _, kept in way], parts), _passed(operators, way, parts)


def _passed(operators: tuple[Product, ...], way: tuple[tuple[Tiles, bool], ...], parts: list[int]) -> int:
    moved = 0
    for at, (each, (tile, kept)) in enumerate(zip(operators, way, strict=True)):
        loops = "mnk" if at in parts else "mkn" if at - 1 in parts else "mk" if at == 0 else "mn"
        i, _, o = run(each, loops, tile, False)
        _, w, _ = run(each, "m", (tile[0], each.k, each.n), True) if kept else run(each, loops, tile, False)
        moved += w * each.weight_bits + (i * each.input_bits if at == 0 else 0)
        moved += o * each.output_bits if at == len(operators) - 1 else 0
    return moved


def _held(operators: tuple[Product, ...], tiles: list[Tiles], kept: list[bool], parts: list[int]) -> int:
    """Bits that are held while each operator runs, and all weights that stay."""
    stays = sum(
        each.heads * each.weight_bits * each.k * each.n for each, stay in zip(operators, kept, strict=True) if stay
    )
    most = 0
    for at, (each, (m, k, n)) in enumerate(zip(operators, tiles, strict=True)):
        now = m * each.heads * (k * each.input_bits + n * each.output_bits)
        now += 0 if kept[at] else each.heads * each.weight_bits
        if at in parts:
            after = operators[at + 1]
            now += m * after.heads * tiles[at + 1][2] * after.output_bits
        if at - 1 in parts:
            before = operators[at - 1]
            now += m * before.heads * tiles[at - 1][1] * before.input_bits
        most = max(most, now)
    return stays + most


def room(placed: list[tuple[Product, Tiles, bool]], scheme: Scheme) -> int:
    """Bits of buffer of one mapping."""
    tiles = []
    for operator, (m, k, n), kept in placed:
        weight = operator.heads * operator.weight_bits * (k * n if kept else 1)
        tiles.append((m * operator.heads * k * operator.input_bits, weight, m * operator.heads * n *
                      operator.output_bits))  # fmt: skip
    stay = [kept for _, _, kept in placed]
    if scheme == "pipelined":
        return sum(w for _, w, _ in tiles) + max(i + o for i, _, o in tiles)
    if scheme == 1:
        most = max(i + o + (0 if kept else w) for (i, w, o), kept in zip(tiles, stay, strict=True))
        return most + sum(w for (_, w, _), kept in zip(tiles, stay, strict=True) if kept)
    # The largest of all runs of operators that keep all of W, and of all others.
    whole = [kept and k == each.k and n == each.n for each, (_, k, n), kept in placed]
    needs = [sum(tile) for tile, full in zip(tiles, whole, strict=True) if not full]
    for full, group in groupby(range(len(tiles)), key=whole.__getitem__):
        if full:
            members = list(group)
            start, end = members[0], members[-1]
            links = [placed[at][0].heads * placed[at][0].n * placed[at][0].output_bits for at in range(start, end)]
            rows = [sum(links[max(at - 1, 0) : at + 1]) for at in range(end - start + 1)]
            needs.append(sum(w for _, w, _ in tiles[start : end + 1]) + max(tiles[start][0], tiles[end][2]) + max(rows))
    return max(needs)


def front(pairs: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """The Pareto front in bytes."""
    best: list[tuple[int, int]] = []
    for buffer, moved in sorted({(-(-buffer // 8), -(-moved // 8)) for buffer, moved in pairs}):
        if not best or moved < best[-1][1]:
            best.append((buffer, moved))
    return best


def random_chain(seed: int, length: int) -> ProductChain:
    """A small chain with random sizes, heads, batches, bits and needs of rows."""
    rng = random.Random(seed)
    small = [1, 2, 3, 4] if length > 2 else [1, 2, 3, 4, 6]
    m, width, bits = rng.choice([2, 4, 6, 12]), rng.choice([2, 3, 4, 6]), rng.choice([8, 16])
    operators = []
    for position in range(length):
        heads = rng.choice([each for each in (1, 2, 3) if width % each == 0])
        n, out = rng.choice(small), rng.choice([8, 16])
        operators.append(Product(
            f"op{position}", m, width // heads, n, heads, rng.choice([b for b in (1, 1, 2, 3) if m % b == 0]),
            rng.choice(["free", "free", "whole", "softmax"]), bits, rng.choice([4, 8, 16]), out,
        ))  # fmt: skip
        width, bits = heads * n, out
    return ProductChain(tuple(operators))
