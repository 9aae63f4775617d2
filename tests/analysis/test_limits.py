"""Limits on what a diff may cost."""

from dataclasses import replace

import pytest
from report.plans import base, layers, plan, tuned

from tilec.analysis.diff import diff_plans
from tilec.analysis.limits import exceeded, parse_limits
from tilec.errors import UsageError
from tilec.ir.plan import Plan
from tilec.ir.text import parse_expr


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


def test_every_pair_of_levels_has_the_limit() -> None:
    first, *rest = layers()
    costs = (replace(first.cost, read={**first.cost.read, "reg": parse_expr(moved)}) for moved in ("4", "8"))
    old, new = (plan(replace(first, cost=cost), *rest) for cost in costs)
    assert said("traffic=+5%", old, new) == []
    assert said("traffic@all=+5%", old, new) == ["traffic@reg grew by 100.0 % (4 -> 8), 5 % is allowed"]
    assert said("traffic@all=+5%", new, old) == []


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


def test_time_is_what_is_predicted() -> None:
    def of(picoseconds: int) -> Plan:
        first, *_ = layers()
        return plan(replace(first, cost=replace(first.cost, picoseconds=picoseconds)))

    assert said("time=+5%", of(1000), of(1050)) == []
    grown = "time (picoseconds) grew by 5.1 % (1000 -> 1051), 5 % is allowed"
    assert said("time=+5%", of(1000), of(1051)) == [grown]
    assert said("picoseconds=+5%", of(1000), of(1051)) == ["picoseconds grew by 5.1 % (1000 -> 1051), 5 % is allowed"]


def test_groups_alone_must_stay_as_they_are() -> None:
    assert said("groups", base(), base()) == []
    assert said("groups,traffic=+0%") == ["groups are not the same (1 merged; 3 -> 2), none may be another"]
    assert said(" groups ", tuned(), base()) == ["groups are not the same (1 split; 2 -> 3), none may be another"]
    first, *rest = layers()
    retiled = plan(replace(first, variants=(replace(first.variants[0], tiles={}),)), *rest)
    assert said("groups", base(), retiled) == []
    assert said("groups", base(), plan(replace(first, connect={}), *rest)) != []


@pytest.mark.parametrize("limit", ["traffic", "groups=", "groups+5%", "time=5", "+5%", ""])
def test_what_is_no_limit_says_how_to_write_one(limit: str) -> None:
    with pytest.raises(UsageError, match="Write it like traffic=.5%, time=.5%, footprint@smem=.0% or groups"):
        parse_limits([limit])
