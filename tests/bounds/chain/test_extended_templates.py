"""Mappings beyond the published templates: executed element by element, and what they spare."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.extended_templates import CONSUMER, MEANING, PRODUCER, extended_templates
from tilec.bounds.chain.segments import chain_curve, segmented_curve


def executed(one: Product, other: Product, rows: int, kept: bool) -> tuple[int, int]:
    """(most elements held at once, elements moved) of two operators with a link in parts, run step by step."""
    held: set[tuple[object, ...]] = set()
    moved = most = 0

    def need(*element: object) -> None:
        nonlocal moved, most
        if element not in held:
            moved += 1
            held.add(element)
        most = max(most, len(held))

    def make(*element: object) -> None:
        nonlocal most
        held.add(element)
        most = max(most, len(held))

    weights = [*(("V", *at) for at in product(range(one.k), range(one.n))),
               *(("W", *at) for at in product(range(other.k), range(other.n)))]  # fmt: skip
    for weight in weights if kept else ():
        need(*weight)
    for start in range(0, one.m, rows):
        tile = range(start, min(start + rows, one.m))
        for at in product(tile, range(one.k)):
            need("x", *at)
        for at in product(tile, range(other.n)):
            make("y", *at)
        for column in range(one.n):
            for row in tile:
                make("h", row)
            for k in range(one.k):
                need("V", k, column)
                held.discard("" if kept else ("V", k, column))
            for n in range(other.n):
                need("W", column, n)
                held.discard("" if kept else ("W", column, n))
            held -= {("h", row) for row in tile}
        moved += len(tile) * other.n
        held -= {element for element in held if element[0] in "xy"}
    return most, moved


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("kept", [False, True])
def test_a_link_in_parts_takes_the_room_and_the_traffic_that_running_it_takes(rows: int, kept: bool) -> None:
    one = Product("a", 64, 2, 9, input_bits=8, weight_bits=8, output_bits=8)
    other = Product("b", 64, 9, 3, input_bits=8, weight_bits=8, output_bits=8)
    most, moved = executed(one, other, rows, kept)
    curve = chain_curve(ProductChain((one, other)), ragged=True)
    point = curve.at(most)
    assert point is not None
    if kept and rows == 1:
        assert (point.buffer_bytes, point.traffic_bytes) == (most, moved)
        assert [step.template for step in point.segments[0].steps] == [PRODUCER.name, CONSUMER.name]
        assert str(point.segments[0].steps[0]) == "a (made in parts, tile m:1 k:2 n:1, all of W kept)"
    assert point.traffic_bytes <= moved


def test_where_weights_stay_two_short_rows_take_the_place_of_a_long_one() -> None:
    sizes = {"input_bits": 8, "weight_bits": 8, "output_bits": 8}
    chain = ProductChain((Product("a", 1024, 4, 64, **sizes), Product("b", 1024, 64, 4, **sizes)))
    weights = 2 * 4 * 64
    published, beyond = chain_curve(chain), chain_curve(chain, ragged=True)
    assert published.points[-1].traffic_bytes == beyond.points[-1].traffic_bytes
    assert published.largest_useful_buffer == weights + 4 + 64
    assert beyond.largest_useful_buffer == weights + 4 + 1 + 4
    assert MEANING in beyond.mapspace
    assert MEANING not in published.mapspace
    assert MEANING not in chain_curve(chain, "flat", ragged=True).mapspace
    assert MEANING not in chain_curve(chain, scheme="pipelined", ragged=True).mapspace


def test_links_that_need_whole_rows_or_are_short_or_side_by_side_are_not_cut() -> None:
    def parts(*widths: int, rows: str = "free") -> list[set[int]]:
        operators = [Product(f"op{at}", 8, widths[at], widths[at + 1], rows=rows) for at in range(len(widths) - 1)]
        return [set(way.parts) for way in extended_templates(operators)]

    assert parts(4, 64, 4) == [set(), {0}]
    assert parts(4, 64, 4, rows="whole") == parts(4, 64, 4, rows="softmax") == [set()]
    assert parts(64, 4, 64) == [set()]
    assert parts(4, 64, 4, 64, 4) == [set(), {0}, {2}, {0, 2}]
    assert parts(1, 64, 64, 1) == [set(), {0}, {1}]


def test_heads_that_differ_hand_on_a_column_of_both() -> None:
    one, other = Product("a", 4, 2, 12, heads=2), Product("b", 4, 8, 1, heads=3)
    (_, way) = extended_templates([one, other])
    (_, k, made), (_, read, n) = way.operators
    assert (k, made, read, n) == ("whole", 3, 2, "whole")


ACCELFORGE = {
    (512, (64, 64, 64)): [
        (3, 8454144), (4, 6356992), (6, 5308416), (7, 4259840), (11, 3211264), (19, 2686976), (21, 2162688),
        (37, 1638400), (69, 1376256), (73, 1114112), (137, 851968), (265, 688128), (273, 589824), (529, 425984),
        (1041, 327680), (1057, 294912), (2081, 196608), (4129, 172032), (4161, 131072), (8257, 73728),
    ],
    (1024, (32, 128, 32)): [
        (3, 16941056), (4, 12746752), (6, 10649600), (7, 8552448), (11, 6455296), (19, 5406720), (21, 4358144),
        (37, 3309568), (69, 2785280), (73, 2260992), (137, 1736704), (265, 1347584), (273, 1212416),
        (521, 1114112), (529, 823296), (785, 819200), (1041, 589824), (1057, 561152), (1553, 557056),
        (2081, 327680), (4129, 294912), (4161, 172032), (8257, 73728),
    ],
    (512, (16, 64, 16, 64, 16)): [
        (3, 4276224), (4, 3227648), (6, 2703360), (7, 2179072), (11, 1654784), (19, 1384448), (21, 1130496),
        (37, 860160), (69, 664576), (73, 598016), (133, 540672), (137, 402432), (201, 401408), (265, 278528),
        (273, 271360), (393, 270336), (529, 147456), (1057, 81920), (2081, 36864), (4129, 20480),
    ],
}  # fmt: skip
"""Bytes of buffer and of traffic of the fused mappings that AccelForge 1.0.467 finds best: rows and widths of a chain,
elements of a byte, one buffer that keeps every tensor."""


@pytest.mark.parametrize(("rows", "widths"), ACCELFORGE)
def test_no_fused_mapping_of_another_mapper_moves_less(rows: int, widths: tuple[int, ...]) -> None:
    sizes = {"input_bits": 8, "weight_bits": 8, "output_bits": 8}
    chain = ProductChain(tuple(Product(f"op{at}", rows, *pair, **sizes) for at, pair in enumerate(pairwise(widths))))
    curve = segmented_curve(chain, ragged=True)
    for buffer, moved in ACCELFORGE[rows, widths]:
        point = curve.at(buffer)
        assert point is not None
        assert point.traffic_bytes <= moved
    assert curve.points[-1].traffic_bytes == ACCELFORGE[rows, widths][-1][1]
