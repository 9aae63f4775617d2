"""Sizes drawn for plans: allowed, the same for a seed, every variant and the edges of guards and tiles among them."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.test_bind import small
from tilec.ir.bind_plan import variant_at
from tilec.ir.plan import Cost, Group, Plan, Variant
from tilec.ir.samples import MOST, operations, sample_sizes, variant_number
from tilec.ir.sizes import Constraint, SymbolRange, broken_constraints
from tilec.ir.text import parse_expr


def variant(guard: str, **fields: object) -> Variant:
    return replace(Variant(parse_expr(guard), ("l2",), {}, {}, "kernel"), **fields)  # type: ignore[arg-type]


def plan_of(
    groups: list[list[Variant]], ranges: dict[str, SymbolRange], constraints: tuple[str, ...] = (), flops: str = "1"
) -> Plan:
    nodes = small().nodes
    cost = Cost({}, {}, {}, parse_expr(flops))
    made = tuple(Group(f"g{n}", nodes, (), {}, tuple(variants), cost) for n, variants in enumerate(groups))
    conditions = tuple(Constraint(parse_expr(text)) for text in constraints)
    return Plan("p", "d", (), tuple(ranges), (), (), {}, {}, (), made, (), symbol_ranges=ranges, constraints=conditions)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Groups with guards over two symbols in small ranges, and now and then a constraint."""
    ranges = {}
    for symbol in ("a", "b"):
        low, divisor = draw(st.integers(0, 5)), draw(st.sampled_from([1, 1, 2, 4]))
        ranges[symbol] = SymbolRange(low, low + 4 + draw(st.integers(0, 50)), divisor)
    part = st.one_of(
        st.builds("{} >= {}".format, st.sampled_from(["a", "b", "a * b", "a + b"]), st.integers(0, 60)),
        st.builds("{} % {} == 0".format, st.sampled_from(["a", "b"]), st.sampled_from([2, 3])),
        st.builds("{} == {}".format, st.sampled_from(["a", "b"]), st.integers(0, 30)),
    )
    guards = st.lists(st.lists(part, min_size=1, max_size=2).map(" and ".join), max_size=3)
    groups = [[*(variant(guard) for guard in draw(guards)), variant("True")] for _ in range(draw(st.integers(1, 3)))]
    limits = draw(st.sampled_from([(), ("a * b <= 200",), ("a * b % 6 == 0",), ("a <= b",)]))
    return plan_of(groups, ranges, limits, "a * b * 7")


def allowed_sizes(plan: Plan) -> list[dict[str, int]]:
    ends = [range(entry.low, (entry.high or 0) + 1) for entry in plan.symbol_ranges.values()]
    found = [dict(zip(plan.symbol_ranges, sizes, strict=True)) for sizes in product(*ends)]
    return [sizes for sizes in found if not broken_constraints(plan.constraints, plan.symbol_ranges, sizes)]


@pytest.mark.feature("B08")
@settings(max_examples=60, deadline=None)
@given(plan=plans(), seed=st.integers(0, 3))
def test_samples_are_allowed_and_every_variant_runs_at_one(plan: Plan, seed: int) -> None:
    samples = sample_sizes(plan, seed)
    assert samples == sample_sizes(plan, seed)
    assert len({tuple(sizes.values()) for sizes in samples}) == len(samples)
    for sizes in samples:
        assert list(sizes) == list(plan.symbols)
        assert not broken_constraints(plan.constraints, plan.symbol_ranges, sizes)
    everywhere = allowed_sizes(plan)
    reachable = [sizes for sizes in everywhere if all(sizes.values())] or everywhere
    for group in plan.groups:
        ran = {variant_number(group, sizes) for sizes in samples}
        assert ran >= {variant_number(group, sizes) for sizes in reachable}
        assert all(group.variants[variant_number(group, sizes)] is variant_at(group, sizes) for sizes in samples)


def seen(plan: Plan, symbol: str, seed: int = 0) -> set[int]:
    return {sizes[symbol] for sizes in sample_sizes(plan, seed)}


@pytest.mark.feature("B08")
def test_edges_of_ranges_and_guards_are_among_them() -> None:
    plan = plan_of([[variant("seq >= 33"), variant("True")]], {"seq": SymbolRange(0, 300, likely=(50, 200))})
    assert {0, 1, 32, 33, 34, 50, 200, 300} <= seen(plan, "seq")
    assert any(size % 2 for size in seen(plan, "seq") - {1})
    plan = plan_of([[variant("seq >= 33"), variant("True")]], {"seq": SymbolRange(0, None, divisor=8)})
    assert {0, 8, 32, 40, 128, 512} <= seen(plan, "seq")


def test_edges_of_tiles_are_among_them() -> None:
    nodes = small().nodes
    symbol, iterator = next(
        (name, i)
        for node in nodes
        for i, extent in node.expr.domain.items()
        for name in small().symbols
        if extent == parse_expr(name)
    )
    node = next(node.name for node in nodes if iterator in node.expr.domain)
    tiled = variant("True", tiles={"l2": {node: {iterator: 24}}})
    plan = plan_of([[tiled]], {s: SymbolRange(1, 90) for s in small().symbols})
    assert {23, 24, 25} <= seen(plan, symbol)


@pytest.mark.feature("B08")
def test_products_of_symbols_have_edges_too() -> None:
    plan = plan_of([[variant("a * b >= 64"), variant("True")]], {"a": SymbolRange(1, 16), "b": SymbolRange(1, 999)})
    products = {sizes["a"] * sizes["b"] for sizes in sample_sizes(plan)}
    assert {64} <= products
    assert products & {63, 62, 60, 56, 48}
    assert len(sample_sizes(plan)) <= MOST


def test_a_budget_leaves_variants_and_one_sample() -> None:
    plan = plan_of([[variant("seq >= 100"), variant("True")]], {"seq": SymbolRange(1, 4096)}, flops="seq * 1000")
    few = sample_sizes(plan, budget=200_000)
    assert {variant_number(plan.groups[0], sizes) for sizes in few} == {0, 1}
    assert sum(operations(plan, sizes) for sizes in few) <= 200_000
    assert sample_sizes(plan, budget=0) == tuple(each for each in few if each["seq"] in (1, 100))
    assert 4096 in seen(plan, "seq")


def test_a_plan_without_symbols_has_one_and_impossible_sizes_none() -> None:
    assert sample_sizes(plan_of([[variant("True")]], {})) == ({},)
    assert sample_sizes(plan_of([[variant("True")]], {"a": SymbolRange(1, 9)}, ("a >= 20",))) == ()


def test_sizes_that_broadcast_are_equal_in_some_and_1_in_others() -> None:
    variants = [variant("t >= 8 and m == t"), variant("m == t"), variant("True")]
    ranges = {"t": SymbolRange(2, 5000), "m": SymbolRange(1, 5000)}
    plan = plan_of([variants], ranges, ("m == t or m == 1",))
    samples = sample_sizes(plan)
    assert {variant_number(plan.groups[0], sizes) for sizes in samples} == {0, 1, 2}
    assert all(sizes["m"] in (1, sizes["t"]) for sizes in samples)
