"""The page in headless Chromium: groups open, charts are drawn, all by keyboard, at any width."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from report.plans import base, group, plan, tuned

from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity
from tilec.bounds.plan.plan_bounds import with_bounds
from tilec.ir.expr import Const
from tilec.ir.graph import Node, Port, Tensor
from tilec.ir.text import parse_expr, parse_tensor
from tilec.report.html import Shown, page
from tilec.spec.resolve import resolve_device


def timed(given):
    """The plan with bounds, and predicted times of 3, 2, 1 microseconds."""
    groups = given.groups
    slow = [replace(g, cost=replace(g.cost, picoseconds=(len(groups) - n) * 10**6)) for n, g in enumerate(groups)]
    return with_bounds(replace(given, groups=tuple(slow)), [LevelCapacity("smem", "dram", 4096, 8, None)], oro_plus)


@pytest.fixture(scope="module")
def single():
    report = {"verdict": "pass", "verified_on": "host", "outputs": {"y": {"tolerance": 1e-5}}}
    run = {"draws": [{"seed": 0, "mean": 0.0, "errors": {"y": 1e-7}}]}
    return page([Shown("here", timed(base()), resolve_device("a100"), report, run)])


@pytest.mark.parametrize("width", [1400, 400])
def test_everything_is_drawn_at_any_width(single, tab, width):
    script = """
    one("#tab-traffic").click();
    await drawn();
    return { over: overflow(), inner: innerWidth, boxes: all(".box").length,
      strips: all(".strip .part").length, charts: all("svg.chart").length, dots: all("#roofline .dot circle").length,
      spots: all("svg .spot").length,
      heads: all("h2").map((head) => head.textContent), verdict: one(".verdict-line").textContent,
      open: one("#detail h3").textContent, pressed: one(".box[aria-pressed=true]").getAttribute("aria-label") };
    """
    found = tab.look(single, script, width=width)
    assert (found["over"], found["inner"]) == (0, width)
    assert (found["boxes"], found["strips"], found["charts"], found["dots"], found["spots"]) == (3, 6, 3, 3, 1)
    assert found["heads"][:3] == ["Where time and bytes go", "The model, group by group", "Traffic and time by level"]
    assert found["verdict"] == "✓ pass on host"
    assert found["open"] == "MatMul, Relu"
    assert found["pressed"].startswith("1: MatMul, Relu, register-fused, 3.00 µs · 4.50 KiB")


def test_a_measured_latency_stands_with_its_sizes(tab):
    run = {"latency_us": 12.5, "latency_sizes": {"batch": 8}}
    text = page([Shown("here", timed(base()), resolve_device("a100"), {"verdict": "pass", "verified_on": "host"}, run)])
    said = "one('#verification').textContent.includes('12.5 µs a run at batch=8')"
    script = f"return [one('.figure .below').textContent, {said}];"
    assert tab.look(text, script) == ["12.5 µs at batch=8 when it was verified", True]


def test_groups_open_by_pointer_keyboard_and_address(single, tab):
    script = """
    const head = () => one("#detail h3").textContent;
    const seen = [head()];
    click(all(".box")[0]);
    seen.push(head());
    one(".box[tabindex='0']").focus();
    press("ArrowDown");
    press("Enter");
    await drawn();
    seen.push(head());
    one("#tab-tiles").focus();
    press("ArrowRight"); press("ArrowRight"); press("ArrowRight");
    await drawn();
    seen.push(one("[role=tab][aria-selected=true]").textContent, one(".program .line").textContent.trim());
    click(all(".strip")[0].querySelectorAll(".part")[2]);
    await drawn();
    seen.push(head(), location.hash);
    all(".choice button")[1].click();
    seen.push(one(".list").hidden, all(".list tbody tr").length);
    return seen;
    """
    found = tab.look(single, script, address="#group=g")
    assert found[:4] == ["MatMul", "MatMul, Relu", "MatMul", "Program"]
    assert found[4].startswith("1program k")
    assert found[5:] == ["Softmax × 2", "#group=y", False, 3]


def test_the_theme_changes_and_every_part_is_reached_with_tab(single, tab):
    script = """
    const back = () => getComputedStyle(document.body).backgroundColor;
    const seen = [];
    for (const press of [1, 2]) { one(".theme").click(); seen.push(back()); }
    const hidden = all("[role=button], [role=tab], button, summary, a").filter((each) =>
      each.tabIndex < 0 && !each.closest("[role=tablist], svg"));
    const svgs = all("svg[role=group]").map((svg) => svg.querySelectorAll("[tabindex='0']").length);
    const unnamed = all("[role=button], [role=img], button").filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()));
    return { seen, hidden: hidden.length, least: Math.min(...svgs), unnamed: unnamed.length };
    """  # noqa: E501
    found = tab.look(single, script)
    assert found["seen"] == ["rgb(245, 246, 248)", "rgb(13, 17, 23)"]
    assert (found["hidden"], found["unnamed"]) == (0, 0)
    assert found["least"] >= 1


@pytest.mark.parametrize("width", [1400, 400])
def test_two_plans_stand_side_by_side(tab, width):
    text = page([Shown("old", timed(base())), Shown("new", timed(tuned()))])
    script = """
    const before = one("#detail h3").textContent;
    one(".other .link").click();
    await drawn();
    all("details.change").forEach((each) => { each.open = true; });
    await drawn();
    const both = [...one(".both tbody").rows].map((row) => row.textContent);
    return { over: overflow(), before, both, after: one("#detail .side").textContent,
      changes: all("details.change").length, totals: all("#changes .two table")[0].rows.length, kinds: all(".change .chip").map((each) => each.textContent) };
    """  # noqa: E501
    found = tab.look(text, script, width=width)
    assert found["over"] == 0
    assert (found["before"], found["after"]) == ("MatMul, Relu", "A")
    assert found["both"] == [
        "predicted time3.00 µs2.00 µs−33 %",
        "traffic4.50 KiB4.41 KiB−2.1 %",
        "operations1.00 kop1.00 kopsame",
    ]
    assert found["kinds"] == ["retiled", "merged"]
    assert found["totals"] > 5


def test_names_stay_names(tab):
    nasty = "</script><img src=x onerror=alert(1)>"
    first, *rest = base().groups
    changed = replace(first, nodes=tuple(replace(node, op=nasty, origin=(nasty,)) for node in first.nodes))
    text = page([Shown(nasty, plan(changed, *rest, name=nasty, inputs=(Port(nasty, "x"),)))])
    script = """
    one("#tab-nodes").click();
    return { images: all("img").length, title: document.title, head: one("h1").textContent };
    """
    found = tab.look(text, script)
    assert found["images"] == 0
    assert found["head"].startswith(nasty)


def test_symbols_and_empty_plans_are_shown(tab):
    first, *rest = base().groups
    symbolic = replace(first, cost=replace(first.cost, read={"smem": parse_expr("s * 4")}, flops=parse_expr("s + 1")))
    script = "return { heads: all('h2').length, text: document.body.textContent.includes('s * 4') };"
    found = tab.look(page([Shown("here", plan(symbolic, *rest, symbols=("s",)))]), script)
    assert found == {"heads": 8, "text": True}
    empty = page([Shown("here", plan(inputs=(), outputs=(), refusals=()))])
    assert tab.look(empty, "return all('h2').length;") == 7


def test_thousands_of_groups_are_not_all_in_the_document(tab):
    first = replace(group("h"), cost=replace(group("h").cost, picoseconds=10**6))
    names = [f"t{n}" for n in range(2601)]
    exprs = [parse_tensor(f"{b}[m] = {a}[m] + 1.0", {"m": Const(64)}) for a, b in pairwise(names)]
    variant = replace(first.variants[0], tiles={})
    many = [
        replace(first, name=e.tensor, nodes=(Node(e, "Add"),), outputs=(e.tensor,), variants=(variant,)) for e in exprs
    ]
    tensors = dict.fromkeys(names, Tensor((Const(64),), "f32"))
    text = page(
        [Shown("here", plan(*many, tensors=tensors, inputs=(Port("x", "t0"),), outputs=(Port("y", names[-1]),)))]
    )
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert len(data["plans"][0]["groups"]) == 2600
    script = """
    const seen = [all(".graph .box").length];
    one(".box[tabindex='0']").focus();
    press("End");
    press("ArrowUp");
    seen.push(all(".graph .box").length);
    const last = document.activeElement.getAttribute("aria-label");
    return { seen, last, rows: all(".list tbody tr").length, more: one(".list .more").textContent };
    """
    found = tab.look(text, script)
    assert 5 < min(found["seen"]) <= max(found["seen"]) < 60
    assert found["last"] == "2600: Add, single, 1.00 µs · 4.50 KiB"
    assert found["rows"] == 150
    assert found["more"] == "Show 150 more of 2,600"


def test_a_cache_that_is_asked_for_more_than_it_has_is_not_so_many_percent_full(tab):
    given = base()
    cache = replace(given.levels[1], capacity=16, managed="implicit")
    script = """return all(".strip-name, .held .meter-line").map((each) => each.textContent);"""
    texts = {
        managed: tab.look(
            page([Shown("here", replace(given, levels=(given.levels[0], level, *given.levels[2:])))]), script
        )
        for managed, level in (("implicit", cache), ("explicit", replace(cache, managed="explicit")))
    }
    fullest = [each for each in texts["implicit"] if each.startswith("holds")]
    assert fullest
    assert "more than the cache has" in fullest[0]
    assert sum("more than the cache has" in each for each in texts["implicit"]) == 2
    assert not any("more than the cache has" in each for each in texts["explicit"])
    assert any(re.search(r"holds .* \d{3,} %$", each) for each in texts["explicit"])
