"""`host` in tests is a made-up machine; what plans for it works on slower, smaller and older ones too."""

import json

import pytest
from hosts import HOSTS, host_text

from cli import models
from tilec.spec.device import DeviceSpec
from tilec.spec.located import parse_yaml, validate
from tilec.spec.probe import known_text, probed_text
from tilec.spec.resolve import resolve_device


def made_up(name):
    return validate(DeviceSpec, parse_yaml(host_text(name), name))


def test_a_test_that_measures_this_machine_fails():
    with pytest.raises(AssertionError, match="plan for a device in a file, or mark the test `probes`"):
        probed_text(again=True)


@pytest.mark.probes
def test_one_about_probing_may_measure(monkeypatch):
    asked = []
    monkeypatch.setattr("subprocess.run", lambda command, **_: asked.append(command) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        probed_text(again=True)
    assert asked[0][1:3] == ["-m", "tilec.spec.measure"]


def test_the_host_is_the_made_up_one(request):
    spec, wanted = resolve_device("host"), made_up(request.config.getoption("--host"))
    assert "a made-up machine" in known_text()
    assert (spec.cores, spec.levels, spec.compute) == (wanted.cores, wanted.levels, wanted.compute)


def test_machines_that_are_made_up_differ():
    usual, half, one, older = (made_up(name) for name in HOSTS)
    assert half.bandwidth("dram") == usual.bandwidth("dram") // 2
    assert half.peak(("f32", "f32"), "f32") == usual.peak(("f32", "f32"), "f32") // 2
    assert (usual.cores, one.cores) == (2, 1)
    assert older.level("reg").capacity <= 512
    assert not [feature for feature in older.target.features if feature.startswith("+avx512")]


@pytest.mark.parametrize("name", [name for name in HOSTS if name != "usual"])
def test_models_compile_and_verify_for_other_machines(cli, tmp_path, name):
    (tmp_path / "host.yaml").write_text(host_text(name))
    models.mlp(tmp_path / "model.onnx", "batch")
    ran = cli("compile", "model.onnx", "--device", "host.yaml")
    assert ran.code == 0, ran.err
    report = json.loads((tmp_path / "model.tilec" / "4-report.json").read_text())
    assert report["body"]["verdict"] == "pass" if "body" in report else report["verdict"] == "pass"
