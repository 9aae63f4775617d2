"""Dynamic models: symbols stay until they are bound, it does not matter when, and only codegen needs them bound."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from acceptance.building import ENVIRONMENT, FORMS, check_draws, stage, tilec
from acceptance.miniatures import SMALL, miniature, symbols
from tilec.artifact import read_artifact
from tilec.importer import import_model
from tilec.ir.codec import plan_from_json
from tilec.ir.expr import constant_value
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device

QUICK = {
    *(("vgg16", "decomposed"), ("nerf-mlp", "fused"), ("llama-layer-decode", "fused")),
    ("llama-layer-prefill", "decomposed"),
}
"""Every set of symbols, in either form; layers of attention in place of networks of them."""
CASES = [
    pytest.param(name, form, marks=[] if (name, form) in QUICK else [pytest.mark.slow])
    for name in SMALL
    for form in FORMS
]


@pytest.mark.quick_cases("nerf-mlp-fused")
@pytest.mark.parametrize(("name", "form"), CASES)
def test_small_dynamic_models_keep_their_symbols_and_are_planned(tmp_path, name, form):
    graph = import_model(miniature(name, form, tmp_path, dynamic=True)).graph
    assert set(graph.symbols) == set(symbols(name))
    plan = schedule(graph, resolve_device("avx2"))
    assert set(plan.symbols) == set(symbols(name))
    shapes = [plan.tensors[port.tensor].shape for port in plan.outputs]
    assert any(constant_value(extent) is None for shape in shapes for extent in shape)
    assert all(group.variants for group in plan.groups)


@pytest.mark.quick_cases("nerf-mlp-fused")
@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param("bert-base", "fused", marks=pytest.mark.slow),
        pytest.param("bert-base", "decomposed", marks=pytest.mark.slow),
        ("llama-layer-decode", "decomposed"),
        pytest.param("shufflenet-v2", "fused", marks=pytest.mark.slow),
        ("nerf-mlp", "fused"),
    ],
)
def test_bound_at_import_or_at_schedule_the_plan_is_the_same(tmp_path, name, form):
    miniature(name, form, tmp_path, dynamic=True)
    flags = [f"--shape={symbol}={size}" for symbol, size in symbols(name).items()]
    stage("import", "model.onnx", *flags, "-o", "bound.json", folder=tmp_path)
    stage("schedule", "bound.json", "--device", "avx2", "-o", "early.json", folder=tmp_path)
    stage("import", "model.onnx", "-o", "free.json", folder=tmp_path)
    stage("schedule", "free.json", *flags, "--device", "avx2", "-o", "late.json", folder=tmp_path)
    assert (tmp_path / "early.json").read_bytes() == (tmp_path / "late.json").read_bytes()
    assert read_artifact(tmp_path / "free.json", "graph").body["symbols"] == list(symbols(name))
    assert not read_artifact(tmp_path / "late.json", "plan").body["symbols"]


def test_import_may_be_piped_into_schedule(tmp_path):
    miniature("nerf-mlp", "fused", tmp_path, dynamic=True)
    base = f"{sys.executable} -m tilec"
    line = f"{base} import model.onnx -o - | {base} schedule - --shape batch=1 --device avx2 -o -"
    ran = subprocess.run(line, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    stage("import", "model.onnx", "--shape", "batch=1", "-o", "g.json", folder=tmp_path)
    stage("schedule", "g.json", "--device", "avx2", "-o", "p.json", folder=tmp_path)
    assert ran.stdout == (tmp_path / "p.json").read_bytes()


@pytest.mark.slow
def test_symbols_stay_in_plan_and_kernels(tmp_path):
    miniature("llama-layer-decode", "fused", tmp_path, dynamic=True)
    stage("import", "model.onnx", "-o", "g.json", folder=tmp_path)
    stage("schedule", "g.json", "--device", "avx2", "-o", "p.json", folder=tmp_path)
    plan = plan_from_json(read_artifact(tmp_path / "p.json", "plan").body)
    assert plan.symbols == ("batch", "past")
    assert any("past" in str(value) for value in json.loads((tmp_path / "p.json").read_text())["tensors"].values())
    tilec("codegen", "p.json", "-o", "out", folder=tmp_path)
    sizes = read_artifact(tmp_path / "out" / "3-kernels.json", "kernels").body["runtime"]["sizes"]
    assert [symbol["name"] for symbol in sizes["symbols"]] == ["batch", "past"]


@pytest.mark.quick_cases("nerf-mlp")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("bert-base", marks=pytest.mark.slow),
        "nerf-mlp",
        "llama-layer-decode",
        pytest.param("mobilenet-v2", marks=pytest.mark.slow),
    ],
)
def test_dynamic_models_compile_at_other_sizes(tmp_path, name):
    sizes = {symbol: size + 1 for symbol, size in symbols(name).items()}
    check_draws(miniature(name, "decomposed", tmp_path, dynamic=True), sizes)
