"""Every function of every asset runs on pages of real plans, without a word on the console; a fault in any is found."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from cli import models
from onnx import helper, numpy_helper
from report.html.browser import Browser, PageError
from report.plans import base, group, plan, tuned

from tilec.analysis.scenario_figures import ScenarioFigure, ScenarioFigures
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity
from tilec.bounds.plan.plan_bounds import with_bounds
from tilec.importer import import_model
from tilec.ir.bind_plan import complete_sizes
from tilec.ir.expr import Const
from tilec.ir.graph import Node, Port, Tensor
from tilec.ir.plan import Plan, Refusal
from tilec.ir.sizes import Constraint
from tilec.ir.text import parse_expr, parse_tensor
from tilec.pipeline.code_decisions import decide_for
from tilec.pipeline.plan_at_sizes import plan_at_sizes
from tilec.pipeline.plan_bounds import plan_with_bounds
from tilec.report.html import Shown, page
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device

SCENARIOS = (
    ScenarioFigures(
        "decode",
        "seq = 1",
        "caches of the model",
        "past",
        tuple(ScenarioFigure({"seq": 1, "past": n}, 64 * n, 32 * n, 1000 * n) for n in (16, 512)),
    ),
    ScenarioFigures("fixed", "seq = 4", "", "", (ScenarioFigure({"seq": 4}, 4096, None, 0),)),
)

PAGE = sys.modules["tilec.report.html.page"]

WALK = """
const choices = "button, summary, input, [role=button], [role=tab], [tabindex]";
globalThis.setTimeout = (action) => action();
const shapes = "svg [role=img], svg [role=button], svg rect, svg .part";
const keys = ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home", "Enter", " ", "x"];
const point = (element) => {
  for (const kind of ["pointerenter", "pointermove", "pointerleave"]) element.dispatchEvent(new PointerEvent(kind));
};
const use = async (element) => {
  if (!element?.isConnected || element.disabled) return;
  point(element);
  element.focus();
  for (const key of element.matches("button:not([role]), input") ? [] : keys) {
    element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
  for (const value of element.matches("input") ? ["no such name", "", "m"] : []) {
    element.value = value;
    element.dispatchEvent(new Event("input"));
  }
  element.matches("summary, .theme") ? element.click() : click(element);
  element.blur();
};
for (const id of all("#detail [role=tab]").map((each) => each.id)) {
  click(document.getElementById(id));
  for (const label of ["Group behind", "Group before"]) await use(one(`#detail [aria-label="${label}"]`));
  for (let place = 0; ; place += 1) {
    click(document.getElementById(id));
    all(shapes).forEach(point);
    const inside = all(`#tab-body :is(${choices})`)[place];
    if (!inside || place > 4) break;
    await use(inside);
  }
}
for (const each of all("#detail .other .link")) await use(each);
for (const each of all("#detail [role=tab]")) await use(each);
const used = new Map();
const seen = new Set();
const kind = (each) => [
  each.tagName, each.getAttribute("class"), each.parentNode.className, each.parentNode.ariaLabel,
  each.ariaLabel?.split(/ [0-9:]/)[0],
].join();
const fresh = (each) => !seen.has(each) && (used.get(kind(each)) ?? 0) < 2;
for (const _ of [1, 2]) {
  for (let next; (next = all(choices).find(fresh)); ) {
    seen.add(next);
    used.set(kind(next), (used.get(kind(next)) ?? 0) + 1);
    await use(next);
  }
  for (const each of all("details")) each.open = true;
  await drawn();
}
for (const each of all(".memory-map .part").slice(0, 2)) click(each);
for (const each of all(".graph")) { each.scrollTop = 1e6; each.dispatchEvent(new Event("scroll")); }
document.documentElement.style.width = "700px";
location.hash = "#group=y";
await drawn();
return used.size;
"""
"""Points at, focuses, presses and opens two of every kind of thing that is there; how many kinds there are."""

MORE = """
one(".graph .box").focus();
for (const key of ["End", "Home", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"]) press(key);
const graph = one(".graph");
graph.scrollTop = graph.scrollHeight / 2;
graph.dispatchEvent(new Event("scroll"));
for (const each of all("details")) each.open = true;
await drawn();
return all(".more").map((each) => each.click()).length;
"""
"""Goes through long lists and a tall graph; how many lists show some of their rows only."""


def quantised(path: Path) -> Path:
    """A product of int8 numbers between quantisers."""
    small = numpy_helper.from_array(np.arange(-64, 64, dtype=np.int8).reshape(16, 8), "w")
    scales = [numpy_helper.from_array(np.float32(0.02), name) for name in ("sx", "sw")]
    zeros = [numpy_helper.from_array(np.int8(zero), name) for name, zero in (("zx", 3), ("zw", 0))]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"], name="quantise"),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"], name="back"),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], name="weights"),
        helper.make_node("MatMul", ["d", "v"], ["y"], name="product"),
    ]
    return models.save(path, nodes, [models.value("x", 4, 16)], [models.value("y", 4, 8)], [small, *scales, *zeros])


def shown(path: Path, device: str, **beside: object) -> Shown:
    """A model planned for a device, as `tilec report` shows it."""
    target = resolve_device(device)
    whole = plan_with_bounds(
        schedule(import_model(path, fallback="allow").graph, target, decide=decide_for(target)), target
    )
    sizes = complete_sizes(whole, {})
    if sizes:
        whole = replace(whole, constraints=(Constraint(parse_expr("batch <= 99"), "node y"),))
    there = plan_at_sizes(whole, sizes, target) if sizes else whole
    return Shown(path.name, there, target, whole=whole if sizes else None, at=sizes, **beside)  # type: ignore[arg-type]


def verified(sizes: dict[str, int] | None = None) -> dict[str, object]:
    """What stands beside a plan that was verified."""
    at = {} if sizes is None else {"sizes": sizes}
    draws = [{"seed": seed, "mean": 0.0, "errors": {"y": error}, **at} for seed, error in ((0, 1e-7), (1, 3e-5))]
    report = {
        "verdict": "pass",
        "verified_on": "host",
        "reference": "onnxruntime",
        "outputs": {"y": {"tolerance": 1e-5}},
    }
    report |= {"per_group": {"compared": 1, "total": 1}, "traffic": {"y": {"counted": {"l2": [1, 2]}, "planned": {}}}}
    moved = {"group": "y", "moved": 1, "bound": 2, "level": "l2", "because": "m:1"}
    report |= {"below_known": [moved], "samples": [{}], "variants": {"y": [{"guard": "batch >= 8", "samples": 0}]}}
    report |= {"diverging": {"group": "y", **({"sizes": sizes} if sizes else {})}}
    report |= {"per_group": {"compared": 1, "total": 1, "diverging": [{"group": "y"}]}} if sizes else {}
    report |= {"programs": {"all_sizes": ["names"], "at_samples": ["sums"], "followed": 1, "total": 1}}
    run = {"draws": draws, "latency_us": 12.0, "latency_sizes": sizes or {}, "machine": {"cpu": "one"}, "threads": 2}
    return {"report": report, "run": run, "measured": {"y": 1e-6}, "digests": {"plan": "0" * 64}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], str]]:
    """Pages of models on devices, made anew with the assets as they are."""
    folder = tmp_path_factory.mktemp("models")
    cpu = shown(models.mlp(folder / "cpu.onnx"), "zen5-avx512", **verified())
    gpu = shown(models.mlp(folder / "gpu.onnx"), "a100", stale=True)
    ipu = shown(models.contributed(folder / "ipu.onnx"), "ipu-mk2")
    codes = shown(quantised(folder / "int8.onnx"), "zen5-avx512", edited=True)
    open_ = shown(models.mlp(folder / "open.onnx", "batch"), "zen5-avx512", **verified({"batch": 8}))
    drawn = {
        **{each.label: [each] for each in (cpu, gpu, ipu, codes, open_)},
        "two": [replace(cpu, plan=branches(15)), replace(gpu, plan=branches(16))],
        "merged": [Shown("old", base(), scenarios=SCENARIOS), Shown("new", tuned(), scenarios=SCENARIOS[:1])],
        "long": [Shown("long", branches(155))],
        "same": [cpu, cpu],
        "no device": [replace(cpu, device=None)],
        "empty": [Shown("none", plan(inputs=(), outputs=(), refusals=()))],
    }
    return {name: lambda each=each: page(each) for name, each in drawn.items()}


def branches(count: int) -> Plan:
    """Many groups, some of which read what others made long before, with bounds; edges that were refused."""
    first = replace(group("h"), cost=replace(group("h").cost, picoseconds=10**6, read={"smem": Const(count)}))
    names = ["t0", *(f"t{n}" for n in range(1, count)), "y"]
    groups = []
    for n, (read, written) in enumerate(pairwise(names)):
        expr = parse_tensor(f"{written}[m] = {read}[m] + {names[n - n % 11]}[m] + z[m]", {"m": Const(64)})
        apart = {
            "tiles": {},
            "vectors": {written: "m"},
            "prefetch": {read: "task"},
            "streamed": (written,),
            "kernel": f"k{n % 12}",
        }
        variant = replace(first.variants[0], **apart)
        node = Node(expr, "Add", (written,))
        groups.append(replace(first, name=written, nodes=(node,), outputs=(written,), variants=(variant,)))
    refusals = [Refusal("t1->t2", "slower", {"joined": n + 2, "apart": 1}) for n in range(45)]
    refusals.append(Refusal("t2->t3", "capacity", {"bytes": 9, "capacity": 8}))
    tensors = dict.fromkeys([*names, "z"], Tensor((Const(64),), "f32"))
    ends = {"inputs": (Port("x", "t0"), Port("z", "z")), "outputs": (Port("y", "y"),)}
    made = plan(*groups, tensors=tensors, refusals=tuple(refusals), **ends)
    return with_bounds(made, [LevelCapacity("smem", "dram", 4096, 8, None)], oro_plus)


def walked(tab: Browser, text: str, counted: dict[tuple[str, int], int]) -> None:
    """Everything of a page is pressed; the calls of each function are added to `counted`."""
    assert tab.look(text, MORE if "t100" in text else WALK) > 2
    for name, place, calls in tab.functions():
        counted[name, place] = counted.get((name, place), 0) + calls


def asset_at(place: int) -> str:
    """The asset and line of a character of the page's script."""
    before = 1
    for name in PAGE._SCRIPTS:
        text = PAGE._asset(name)
        if place < before + len(text) + 1:
            return f"{name}:{text[: place - before].count(chr(10)) + 1}"
        before += len(text) + 1
    raise AssertionError(place)


@pytest.mark.slow
def test_every_function_of_every_asset_runs(tab: Browser, pages: dict[str, Callable[[], str]]) -> None:
    counted: dict[tuple[str, int], int] = {}
    for made in pages.values():
        walked(tab, made(), counted)
    reached = {asset_at(place).partition(":")[0] for (_, place), calls in counted.items() if calls}
    assert reached == set(PAGE._SCRIPTS)
    assert not [f"{asset_at(place)} {name}" for (name, place), calls in counted.items() if not calls]


@pytest.mark.parametrize("asset", ["roofline.js", "program.js", "changes.js"])
def test_a_broken_asset_is_found(tab: Browser, pages: dict[str, Callable[[], str]], asset: str, monkeypatch) -> None:
    whole = PAGE._asset
    broken = lambda text: re.sub(r"^function \w+\([^)]*\) \{$", r"\g<0> gone();", text, flags=re.M)  # noqa: E731
    monkeypatch.setattr(PAGE, "_asset", lambda name: broken(whole(name)) if name == asset else whole(name))
    with pytest.raises(PageError, match="gone is not defined"):
        for made in pages.values():
            walked(tab, made(), {})
