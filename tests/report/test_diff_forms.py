"""What a diff looks like: goldens as text, Markdown and JSON."""

from dataclasses import replace

import pytest
from report.plans import base, group, layers, plan, renamed, tuned

from tilec.artifact import pretty
from tilec.ir.expr import Const
from tilec.ir.plan import Plan
from tilec.ir.text import parse_expr
from tilec.report.diff import diff_plans
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_markdown import diff_markdown
from tilec.report.diff_text import diff_text


def symbolic() -> tuple[Plan, Plan]:
    """Plans whose costs depend on a symbol, one with a group more."""
    first, second, _ = layers()
    small = replace(first, cost=replace(first.cost, read={"smem": parse_expr("64*s")}))
    large = replace(first, cost=replace(first.cost, read={"smem": parse_expr("64*s + 128")}))
    return plan(small, symbols=("s",)), plan(large, second, symbols=("s",), device="wide")


def larger() -> Plan:
    """The network for more rows, without its second layer."""
    first, *_ = layers()
    nodes = tuple(replace(n, expr=replace(n.expr, extents=(Const(128), *n.expr.extents[1:]))) for n in first.nodes)
    return plan(replace(first, nodes=nodes))


CASES = {
    "tuned": (base(), tuned()),
    "reverse": (tuned(), base()),
    "symbolic": symbolic(),
    "larger": (base(), larger()),
}


@pytest.mark.parametrize("case", CASES)
def test_forms(case, golden) -> None:
    diff = diff_plans(*CASES[case])
    golden(f"{case}.txt", diff_text(diff))
    golden(f"{case}.md", diff_markdown(diff))
    golden(f"{case}.json", pretty(diff_to_json(diff)))


def test_equal_plans_are_one_line() -> None:
    assert diff_text(diff_plans(base(), base())) == "no changes: net on toy, 3 groups\n"
    assert diff_markdown(diff_plans(base(), renamed(base()))) == "**no changes: net on toy, 3 groups**\n"
    assert diff_to_json(diff_plans(base(), base()))["changed"] is False
    other = replace(base(), name="other")
    assert diff_text(diff_plans(base(), other)) == "no changes: other on toy, 3 groups, as net on toy\n"


def test_the_same_text_whatever_the_order_of_a_mapping() -> None:
    first, *rest = layers()
    variant = first.variants[0]
    turned = replace(variant, tiles={"smem": {"r": {"n": 32, "m": 8}}})
    straight = replace(variant, tiles={"smem": {"r": {"m": 8, "n": 32}}})
    texts = {
        diff_text(diff_plans(base(), plan(replace(first, variants=(v,)), *rest, group("top"))))
        for v in (turned, straight)
    }
    assert len(texts) == 1
