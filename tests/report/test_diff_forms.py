"""What a diff looks like: goldens as text, Markdown and JSON."""

import re
from dataclasses import replace

import pytest
from report.plans import base, group, layers, plan, renamed, tuned

from tilec.analysis.diff import diff_plans
from tilec.artifact import pretty
from tilec.ir.expr import Const
from tilec.ir.plan import Plan, Refusal
from tilec.ir.text import parse_expr
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_markdown import LARGEST, diff_markdown
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


def many(count: int, traffic: int) -> Plan:
    """Plans of very many groups that cost more or less."""
    first, *_ = layers()
    groups = []
    for n in range(count):
        named = renamed(plan(replace(first, cost=replace(first.cost, read={"smem": Const(traffic + n)}))), f"_{n}")
        groups += named.groups
    return plan(*groups)


def test_markdown_fits_into_a_comment() -> None:
    found = diff_plans(many(200, 4096), many(200, 9000))
    assert len(found.groups) == 200
    for most in (10_000, 2_000):
        text = diff_markdown(found, most)
        assert most * 0.8 < len(text) <= most
        assert text.startswith("**net on toy: 200 -> 200 groups (200 recosted; 0 unchanged)**\n\n| | before | after |")
        assert "<summary>200 changes</summary>" in text
        assert text.count("<details>") == text.count("</details>") == 1
        left = int(re.search(r"\nand (\d+) more: `tilec diff` without `--format md` shows them\n$", text)[1])
        assert left == 200 - text.count("- **recosted**")


def test_an_entry_that_is_too_long_is_cut() -> None:
    old, new = many(1, 4096), many(1, 4096)
    new = replace(new, refusals=tuple(Refusal(f"r{n}->g", "cycle") for n in range(3000)))
    text = diff_markdown(diff_plans(old, new))
    assert 60_000 < len(text) <= LARGEST
    assert "  - and more\n" in text
    assert "</details>" in text


def test_few_changes_stand_open() -> None:
    text = diff_markdown(diff_plans(many(2, 4096), many(2, 9000)))
    assert "<details>" not in text
    assert text.count("- **recosted**") == 2
