"""The plans of real networks under other names: no difference, and all groups differ from those of other networks."""

from __future__ import annotations

import json
import re

import pytest
from replay.plans import FOLDER, MODELS, QUICK

from tilec.analysis.diff import diff_plans
from tilec.ir.codec import plan_from_json
from tilec.ir.plan import Plan


def golden(name: str, device: str) -> str:
    return (FOLDER / f"{name}.{device}.json").read_text(encoding="utf-8")


def renamed(text: str) -> Plan:
    """The plan with a prefix before the name of every tensor; operators and ports keep theirs."""
    given = json.loads(text)
    nodes = [node for group in given["groups"] for node in group["nodes"]] + given["prepared"]
    names = {*given["tensors"], *(node["expr"]["text"].partition("[")[0] for node in nodes)}
    word = re.compile(r'("op": "[^"]*")|(?<![\w.])([A-Za-z_]\w*)')
    changed = json.loads(word.sub(lambda m: f"its_{m[2]}" if m[2] in names else m[0], text))
    for side in ("inputs", "outputs"):
        for port, before in zip(changed[side], given[side], strict=True):
            port["name"] = before["name"]
    return plan_from_json(changed)


@pytest.mark.parametrize("device", QUICK)
@pytest.mark.parametrize("name", MODELS)
def test_names_are_no_difference(name: str, device: str) -> None:
    text = golden(name, device)
    diff = diff_plans(plan_from_json(json.loads(text)), renamed(text))
    assert diff.empty, diff
    assert diff.unchanged == diff.new.groups


def test_networks_share_nothing() -> None:
    old, new = (plan_from_json(json.loads(golden(name, "a100"))) for name in ("bert-base", "mobilenet-v2"))
    diff = diff_plans(old, new)
    assert {kind for change in diff.groups for kind in change.kinds} == {"added", "removed"}
    assert len(diff.groups) == len(old.groups) + len(new.groups)
