"""Limits on what a diff may cost."""

from dataclasses import replace

import pytest
from report.plans import base, layers, plan, tuned

from tilec.errors import UsageError
from tilec.ir.plan import Plan
from tilec.ir.text import parse_expr
from tilec.report.diff import diff_plans
from tilec.report.limits import exceeded, parse_limits


def said(limit: str, old: Plan | None = None, new: Plan | None = None) -> list[str]:
    return exceeded(diff_plans(old or base(), new or tuned()), parse_limits([limit]))


@pytest.mark.parametrize(
    ("limit", "sentences"),
    [
        ("traffic=+0%", []),
        ("traffic@smem=5%", []),
        ("footprint=+100%", []),
        ("footprint=+99.9%", ["footprint@smem grew by 100.0 % (1024 -> 2048), 99.9 % is allowed"]),
        ("footprint@reg=+0%,groups=+0%", []),
        ("launches = +0 %", []),
    ],
)
def test_limits(limit: str, sentences: list[str]) -> None:
    assert said(limit) == sentences


def test_back_again_costs_more() -> None:
    assert said("traffic=+5%,groups=+40%,kernels=+50%", tuned(), base()) == [
        "traffic grew by 46.8 % (8024 -> 11776), 5 % is allowed",
        "groups grew by 50.0 % (2 -> 3), 40 % is allowed",
    ]


def test_from_nothing_is_beyond_any_limit() -> None:
    first, *_ = layers()
    assert said("traffic=+900%", plan(), plan(first)) == ["traffic grew (0 -> 4608), 900 % is allowed"]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("100*s", "105*s", ""),
        ("100*s", "105*s + 1", "grew"),
        ("100*s", "106*s", "may grow beyond 5 %, depending on sizes"),
        ("100*s + 1", "106*s", "may grow beyond 5 %, depending on sizes"),
        ("100*s", "90*s + 8", "may grow beyond 5 %, depending on sizes"),
    ],
)
def test_symbols(before: str, after: str, verdict: str) -> None:
    """A limit holds when it holds for every size."""
    first, *_ = layers()

    def of(text: str) -> Plan:
        return plan(replace(first, cost=replace(first.cost, read={"smem": parse_expr(text)}, written={})))

    (sentence,) = said("traffic=+5%", of(before), of(after)) or [""]
    assert sentence.startswith(f"traffic {verdict}" if verdict else "")
    assert bool(sentence) == bool(verdict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traffic", "--fail-on: 'traffic' is no limit\n  Write it like traffic=+5%"),
        ("traffic=5", "'traffic=5' is no limit"),
        ("traffic=-5%", "'traffic=-5%' is no limit"),
        ("trafic=+5%", "no metric is called 'trafic'\n  Did you mean 'traffic'?"),
        ("groups@smem=+5%", "groups is not counted per level"),
        ("traffic@sme=+5%", "no traffic is counted at 'sme'\n  Did you mean 'smem'?"),
        ("footprint@xyz=+5%", "no footprint is counted at 'xyz'\n  Known: smem, reg."),
    ],
)
def test_wrong_limits(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        said(text)
    assert message in str(error.value)
