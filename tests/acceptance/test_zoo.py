"""Every model of the zoo, in both forms that exporters write, compiled for this machine and right."""

import json
import os
import sys

import pytest

from acceptance.harness import artifacts, compile_and_check, tilec
from tilec import zoo

FORMS = ("fused", "decomposed")


@pytest.mark.feature("W43", "W44", "W45", "A04")
def test_a_model_of_the_zoo_goes_through_the_command_line(tmp_path):
    tilec("zoo", "export", "nerf-mlp", "--seq", 512, "-o", "model.onnx", cwd=tmp_path)
    compile_and_check(tmp_path / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.names())
def test_models_are_right_readable_and_small(tmp_path, name, form):
    model = zoo.export(name, tmp_path / "model.onnx", form=form)
    build = compile_and_check(model)
    for artifact in ("1-graph.json", "2-plan.json"):
        assert (build / artifact).stat().st_size < 2_000_000
        assert max(map(len, (build / artifact).read_text().splitlines())) < 2000


@pytest.mark.slow
@pytest.mark.feature("B02", "B06")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.names())
def test_dynamic_models_keep_their_symbols_until_they_are_bound(tmp_path, name, form):
    zoo.export(name, tmp_path / "model.onnx", form=form, dynamic=True)
    tilec("import", "model.onnx", "-o", "free.json", cwd=tmp_path)
    symbols = json.loads((tmp_path / "free.json").read_text())["symbols"]
    assert symbols
    sizes = ",".join(f"{symbol}={2 if symbol == 'batch' else 24}" for symbol in symbols)
    tilec("import", "model.onnx", "--shape", sizes, "-o", "bound.json", cwd=tmp_path)
    tilec("schedule", "bound.json", "--device", "avx2", "-o", "one.json", cwd=tmp_path)
    tilec("schedule", "free.json", "--device", "avx2", "--shape", sizes, "-o", "two.json", cwd=tmp_path)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    tilec("schedule", "free.json", "--device", "avx2", "-o", "symbolic.json", cwd=tmp_path)
    plan = json.loads((tmp_path / "symbolic.json").read_text())
    assert plan["symbols"] == symbols


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet-v2", "bert-base", "nafnet"])
def test_bytes_do_not_depend_on_folder_cache_run_or_simd(tmp_path, name):
    model = zoo.export(name, tmp_path / "one" / "model.onnx")
    first = artifacts(compile_and_check(model))
    device = tmp_path / "one" / "model.tilec" / "device.yaml"
    other = tmp_path / "two" / "deeper"
    other.mkdir(parents=True)
    variables = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    }
    tilec("import", model, "-o", "g.json", cwd=other, env=variables)
    tilec("schedule", "g.json", "--device", device, "-o", "p.json", cwd=other, env=variables)
    tilec("codegen", "p.json", "--device", device, "-o", "build", cwd=other, env=variables)
    tilec("verify", "build", cwd=other, env=variables)
    again = artifacts(other / "build")
    again["1-graph.json"] = (other / "g.json").read_bytes()
    assert first.keys() == again.keys()
    assert [name for name in first if first[name] != again[name]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.names())
def test_import_and_schedule_need_no_tvm(tmp_path, name):
    for package in ("tvm", "tvm_ffi", "tvm_ffi_orcjit"):
        (tmp_path / f"{package}.py").write_text("raise ImportError('not installed')\n")
    zoo.export(name, tmp_path / "model.onnx")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    tilec("compile", "model.onnx", "--device", "avx2", "--to", "schedule", cwd=tmp_path, env=path)
