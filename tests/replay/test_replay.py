"""Plans of small networks on six devices against goldens; what a change alters is shown as `tilec diff` shows it.

`make replay` runs all of it, `make replay UPDATE=1` accepts what is new.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from replay.plans import FOLDER, LONG, QUICK, SHORT, cases, planned

from tilec.analysis.diff import diff_plans
from tilec.artifact import pretty
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.plan import Plan
from tilec.report.diff_text import diff_text


def marked() -> list[object]:
    """The cases; what is not quick is left to `make replay` and `make test-all`."""
    quick = {(n, d) for n, d in cases() if d in QUICK}.difference(LONG).union(SHORT)
    return [pytest.param(*c, marks=() if c in quick else pytest.mark.slow, id="-".join(c)) for c in cases()]


def replay(plan: Plan, file: Path, update: bool) -> None:
    """Fail with the semantic diff when the plan is not the one in the file; with `update` write it instead."""
    text = pretty(plan_to_json(plan))
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if not file.is_file():
        pytest.fail(f"{file.name} is missing; `make replay UPDATE=1` writes it", pytrace=False)
    golden = file.read_text(encoding="utf-8")
    if golden != text:
        said = diff_text(diff_plans(plan_from_json(json.loads(golden), file.name), plan))
        pytest.fail(f"{said}\n`make replay UPDATE=1` accepts this.", pytrace=False)


@pytest.mark.quick_cases("nerf-mlp-avx2", "nerf-mlp-zen5-avx512", "nerf-mlp-neon", "nerf-mlp-mi250", "nerf-mlp-ipu-mk2")
@pytest.mark.parametrize(("name", "device"), marked())
def test_plan_is_the_golden_one(name: str, device: str, request: pytest.FixtureRequest) -> None:
    replay(planned(name, device), FOLDER / f"{name}.{device}.json", request.config.option.update_golden)


def test_every_golden_is_replayed() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {f"{name}.{device}" for name, device in cases()}


def test_another_plan_fails_and_shows_what_differs_until_it_is_accepted(tmp_path: Path) -> None:
    plan, file = planned("nerf-mlp", "avx2"), tmp_path / "golden" / "nerf-mlp.avx2.json"
    replay(plan, file, update=True)
    first = plan.groups[0]
    retiled = replace(first.variants[0], tiles={level: {} for level in first.variants[0].tiles})
    other = replace(plan, groups=(replace(first, variants=(retiled, *first.variants[1:])), *plan.groups[1:]))
    with pytest.raises(pytest.fail.Exception, match=r"(?s)1 retiled.*\n  tile .* -> -\n.*UPDATE=1"):
        replay(other, file, update=False)
    replay(other, file, update=True)
    replay(other, file, update=False)
    with pytest.raises(pytest.fail.Exception, match="is missing"):
        replay(plan, tmp_path / "gone.json", update=False)
