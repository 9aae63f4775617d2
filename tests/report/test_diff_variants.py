"""Diffs of variants of real networks: every number in them is what the two plans say, names alone are no difference."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from replay.plans import graph
from report.explain.replays import replayed, smaller

from tilec import zoo
from tilec.analysis.diff import diff_plans
from tilec.analysis.diff_graphs import diff_graphs
from tilec.importer import import_model
from tilec.ir.codec import graph_from_json, graph_to_json, plan_from_json, plan_to_json
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.ir.text import parse_tensor, tensor_text
from tilec.pipeline.plan_bounds import plan_with_bounds
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_markdown import LARGEST, diff_markdown
from tilec.report.diff_text import diff_text
from tilec.scheduler import schedule

Body = Mapping[str, Any]


def changed(whole: Graph) -> Graph:
    """The graph with one node that computes something else: its first constant is halved."""
    for place, node in enumerate(whole.nodes):
        text = tensor_text(node.expr)
        other = re.sub(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?", lambda found: str(float(found[0]) / 2 + 1), text, count=1)
        if other != text:
            nodes = list(whole.nodes)
            nodes[place] = replace(node, expr=parse_tensor(other, dict(node.expr.domain)))
            return replace(whole, nodes=tuple(nodes))
    raise AssertionError("no node has a constant")


@cache
def full() -> Graph:
    """bert-base, not small."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return import_model(zoo.export("bert-base", Path(folder) / "m.onnx", form="decomposed")).graph


def capacities(name: str, device: str, core: int) -> tuple[Plan, Plan]:
    return replayed(name, device).plan, replayed(name, device, core=core).plan


def one_node(name: str) -> tuple[Plan, Plan]:
    return replayed(name, "avx2").plan, schedule(changed(graph(name)), smaller("avx2", None))


@cache
def whole(core: int | None = None, other: bool = False) -> Plan:
    """bert-base itself on an a100, with another capacity of a core's level, or with a node changed."""
    return schedule(changed(full()) if other else full(), smaller("a100", core))


VARIANTS: dict[str, Callable[[], tuple[Plan, Plan]]] = {
    "nerf-mlp-capacity": lambda: capacities("nerf-mlp", "a100", 16384),
    "bert-base-capacity": lambda: capacities("bert-base", "avx2", 4096),
    "mobilenet-v2-node": lambda: one_node("mobilenet-v2"),
    "bert-base-node": lambda: one_node("bert-base"),
    "whole-capacity": lambda: (whole(), whole(core=49152)),
    "whole-node": lambda: (whole(), whole(other=True)),
}
QUICK = ("nerf-mlp-capacity", "mobilenet-v2-node")
MARKED = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in VARIANTS]


def counted(plan: Body, names: Mapping[str, Any] | None = None) -> dict[str, int]:
    """What a plan says of some of its groups, of all of them if none are named."""
    costs = [group["cost"] for group in plan["groups"] if names is None or group["name"] in names]
    found = {"flops": sum(cost.get("flops", 0) for cost in costs)}
    if any(cost.get("picoseconds") for cost in costs):
        found["picoseconds"] = sum(cost["picoseconds"] for cost in costs)
    lowest, *higher = [level["name"] for level in plan["levels"]]
    for level in (lowest, *higher):
        for name, tables in (("traffic", ("read", "written")), ("transactions", ("transactions",))):
            if name == "traffic" and level == lowest:
                continue
            sizes = [cost[table][level] for cost in costs for table in tables if level in cost.get(table, {})]
            if sizes:
                found[f"{name}@{level}"] = sum(sizes)
        held = [cost["footprint"][level] for cost in costs if level in cost["footprint"]]
        if held and level != lowest:
            found[f"footprint@{level}"] = max(held)
    if names is None:
        kernels = {variant["kernel"] for group in plan["groups"] for variant in group["variants"]}
        found |= {"groups": len(costs), "launches": len(costs), "kernels": len(kernels)}
        first = plan["levels"][1]["name"]
        found |= {"traffic": found[f"traffic@{first}"], "unfused": plan["unfused"].get(first, 0)}
    return found


def said(plan: Body, change: Body, group: str) -> Any:
    """What a plan says of a changed fact of one group."""
    one = next(each for each in plan["groups"] if each["name"] == group)
    (variant,) = one["variants"]
    kind, level, subject = change["kind"], change.get("level", ""), change["subject"]
    tables = {
        "tile": "tiles",
        "step": "steps",
        "order": "order",
        "tail": "tails",
        "layout": "layouts",
        "copies": "copies",
    }
    if kind in tables:
        return variant.get(tables[kind], {}).get(level, {}).get(subject) or None
    if kind in ("joined", "cut", "connect"):
        return one["connect"].get(subject)
    if kind in ("load", "unit"):
        return variant.get({"load": "loads", "unit": "units"}[kind], {}).get(subject)
    if kind == "output":
        return one["outputs"]
    return variant["kernel"] if kind == "kernel" else None


@pytest.mark.parametrize("name", MARKED)
def test_every_number_is_what_the_plans_say(name):
    old, new = VARIANTS[name]()
    diff = diff_to_json(diff_plans(old, new))
    bodies = {"before": plan_to_json(old), "after": plan_to_json(new)}
    assert diff["changed"]
    checked = 0
    for side, body in bodies.items():
        found = {metric: values[side] for metric, values in diff["totals"].items() if values[side] is not None}
        assert found == counted(body)
        refusals = {each["edge"]: each for each in body["refusals"]}
        for change in diff["changes"]:
            if change["kind"] == "refusal":
                numbers = refusals.get(change["subject"])
                told = change.get(side)
                assert (numbers is None) == (told is None)
                assert told is None or all(
                    f"{key}={value}" in told for key, value in numbers.get("numbers", {}).items()
                )
        for group in diff["groups"]:
            costs = counted(body, group[side]) if group[side] else {}
            for metric, values in group["costs"].items():
                assert values[side] == costs.get(metric)
                checked += 1
            if len(group["before"]) == len(group["after"]) == 1:
                for change in group["changes"]:
                    if change["kind"] == "expression":
                        texts = [n["expr"]["text"] for g in body["groups"] for n in g["nodes"]]
                        assert change[side].partition(" over ")[0] in texts
                        checked += 1
                    elif change["kind"] not in ("node", "operands", "shared"):
                        assert change.get(side) == said(body, change, group[side][0]), change
                        checked += 1
    assert checked > 1
    text, markdown = diff_text(diff_plans(old, new)), diff_markdown(diff_plans(old, new))
    for values in diff["totals"].values():
        assert all(f"{value:,}" in text and f"{value:,}" in markdown for value in values.values() if value is not None)
    assert len(markdown) <= LARGEST


def shuffled(text: str, names: list[str], seed: int) -> str:
    """A text with the names of tensors exchanged among each other."""
    others = list(names)
    random.Random(seed).shuffle(others)
    to = dict(zip(names, others, strict=True))
    return re.sub(r"(?<![\w./-])[A-Za-z_]\w*", lambda found: to.get(found[0], found[0]), text)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["mobilenet-v2", pytest.param("bert-base", marks=pytest.mark.slow)])
def test_shuffled_names_are_no_difference(name, seed):
    from json import dumps, loads

    plan = replayed(name, "avx2").plan
    plan = replace(plan, groups=tuple(replace(g, nodes=tuple(map(bare, g.nodes))) for g in plan.groups))
    made = [node.name for group in plan.groups for node in group.nodes]
    body = plan_to_json(plan)
    ports = {side: body.pop(side) for side in ("inputs", "outputs")}
    other = loads(shuffled(dumps(body), made, seed))
    names = dict(
        zip(made, [node["expr"]["text"].partition("[")[0] for g in other["groups"] for node in g["nodes"]], strict=True)
    )
    for side, listed in ports.items():
        other[side] = [{**port, "tensor": names.get(port["tensor"], port["tensor"])} for port in listed]
    found = diff_plans(plan, plan_from_json(other))
    assert found.empty, diff_text(found)[:3000]
    assert [node.name for group in plan.groups for node in group.nodes] != list(names.values())


@pytest.mark.parametrize("name", ["mobilenet-v2", "bert-base"])
def test_shuffled_graphs_are_no_difference(name):
    from json import dumps, loads

    whole = graph(name)
    whole = replace(whole, nodes=tuple(map(bare, whole.nodes)))
    made = [node.name for node in whole.nodes]
    body = graph_to_json(whole)
    ports = {side: body.pop(side) for side in ("inputs", "outputs")}
    other = loads(shuffled(dumps(body), made, 1))
    names = dict(zip(made, [node["expr"]["text"].partition("[")[0] for node in other["nodes"]], strict=True))
    for side, listed in ports.items():
        other[side] = [{**port, "tensor": names.get(port["tensor"], port["tensor"])} for port in listed]
    found = diff_graphs(whole, graph_from_json(other))
    assert found.empty, diff_text(found)[:3000]
    one = diff_graphs(whole, changed(whole))
    assert [change.kinds for change in one.groups] == [("rewritten",)]


def bare(node):
    """The node without what is for people: origins would be shuffled, operators may be called like tensors."""
    return replace(node, origin=(), op="")


def test_bounds_before_and_after():
    plans = [
        plan_with_bounds(replayed("nerf-mlp", "a100", core=core).plan, smaller("a100", core)) for core in (None, 16384)
    ]
    diff = diff_plans(*plans)
    told = diff_to_json(diff)["bounds"]
    for side, plan in zip(("before", "after"), plans, strict=True):
        level, bound = next(iter(plan.bounds.items()))
        moved = sum(
            int(table[level].value) for g in plan.groups for table in (g.cost.read, g.cost.written) if level in table
        )
        assert (told[level][side]["least_bytes"], told[level][side]["moved_bytes"]) == (bound.least, moved)
        assert told[level][side]["known_bytes"] == bound.known
        assert f"{moved / bound.known:.2f}x" in diff_text(diff)
        assert f"{moved / bound.known:.2f}x" in diff_markdown(diff)
    assert "times the least known@l2" in diff_text(diff)
