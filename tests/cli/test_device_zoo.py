"""`tilec device` and `tilec zoo`."""

import json

import pytest

from tilec import zoo
from tilec.spec.resolve import resolve_device


def test_device_list_names_every_device_and_the_host(cli):
    lines = cli("device", "list").out.splitlines()
    assert lines[0].split() == ["name", "kind", "levels", "peak", "runs", "description"]
    names = [line.split()[0] for line in lines[1:]]
    assert {"a100", "v100", "avx2", "host"} <= set(names)
    found = json.loads(cli("device", "list", "--json").out)["devices"]
    assert set(found) == set(names)
    assert found["a100"] == {
        "code": True,
        "description": "NVIDIA A100 SXM4 80GB",
        "kind": "gpu",
        "levels": ["dram", "l2", "smem", "reg"],
        "peak": "624TOP/s",
        "peak_types": "i8",
    }
    assert found["avx2"]["code"]


def test_device_list_measures_nothing(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tilec.spec.probe._timings", lambda _host: pytest.fail("measured"))
    assert "this machine, measured when it is first used" in cli("device", "list").out
    monkeypatch.setattr("tilec.spec.probe.known_text", lambda: cli_text("avx2"))
    assert "this machine: " in cli("device", "list").out


def cli_text(name):
    from tilec.spec.resolve import device_source

    return device_source(name).text


def test_device_show_prints_the_file_or_what_it_says(cli):
    assert "name: a100" in cli("device", "show", "a100").out
    shown = json.loads(cli("device", "show", "a100", "--json").out)
    assert shown["sha256"] == resolve_device("a100").digest()


def test_device_show_checks_a_file(cli, tmp_path):
    text = cli("device", "show", "avx2").out
    (tmp_path / "mine.yaml").write_text(text)
    assert cli("device", "show", "mine.yaml").out == text
    (tmp_path / "mine.yaml").write_text(text.replace("launch_level:", "launch_levle:"))
    ran = cli("device", "show", "mine.yaml")
    assert ran.code == 2
    assert "mine.yaml:" in ran.err
    assert "Did you mean 'launch_level'?" in ran.err


def test_device_show_unknown(cli):
    ran = cli("device", "show", "a10")
    assert (ran.code, ran.out) == (2, "")
    assert "no device is called 'a10'" in ran.err
    assert "Did you mean 'a100'?" in ran.err


def test_device_probe_measures_and_writes(cli, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("tilec.spec.probe.probed_text", lambda *, again: asked.append(again) or "name: host\n")
    assert cli("device", "probe").out == "name: host\n"
    ran = cli("device", "probe", "-o", "device.yaml")
    assert (ran.out, (tmp_path / "device.yaml").read_text()) == ("", "name: host\n")
    assert asked == [True, True]


def test_zoo_list_describes_every_model(cli):
    lines = cli("zoo", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(zoo.names())
    assert json.loads(cli("zoo", "list", "--json").out)["models"]["bert-base"].startswith("BERT base")


def test_zoo_export_passes_every_option(cli, tmp_path, monkeypatch):
    seen = {}

    def export(name, path, **options):
        seen.update(options, name=name, path=path)

    monkeypatch.setattr("tilec.zoo.export", export)
    assert (
        cli("zoo", "export", "bert-base", "--seq", "64", "--form", "decomposed", "--batch", "2", "--seed", "3").code
        == 0
    )
    expected = {"name": "bert-base", "form": "decomposed", "batch": 2, "seq": 64, "dynamic": False, "seed": 3}
    assert {key: seen[key] for key in expected} == expected
    assert str(seen["path"]) == "bert-base.onnx"


def test_zoo_export_writes_a_model(cli, tmp_path):
    import onnx

    assert cli("zoo", "export", "nerf-mlp", "--seq", "8", "-o", "models/nerf.onnx").code == 0
    onnx.checker.check_model(str(tmp_path / "models" / "nerf.onnx"))


@pytest.mark.parametrize("arguments", [["export", "resnet"], ["export", "nerf-mlp", "--batch", "0"]])
def test_zoo_export_refuses(cli, listing, arguments):
    before = listing()
    ran = cli("zoo", *arguments)
    assert ran.code == 2
    assert listing() == before


FOREIGN = """
arch:
  nodes:
  - !Memory {name: Main, size: inf, area: 0}
  - !Memory {name: Buffer, size: 8192}
  - !Compute {name: MAC}
"""


def test_device_import_writes_a_device_that_bounds_and_plans_take(cli, tmp_path):
    (tmp_path / "arch.yaml").write_text(FOREIGN)
    ran = cli("device", "import", "arch.yaml")
    assert ran.code == 0
    assert "name: arch\n" in ran.out
    assert "dropped: Main: area\n" in ran.err
    assert "assumed: Buffer: bandwidth without limit\n" in ran.err
    told = cli("device", "import", "arch.yaml", "-o", "mine.yaml", "--quiet")
    assert (told.out, told.err) == ("", "")
    assert (tmp_path / "mine.yaml").read_text() == ran.out.replace("name: arch\n", "name: mine\n")
    shown = json.loads(cli("device", "show", "mine.yaml", "--json").out)
    assert [level["capacity"] for level in shown["levels"]] == ["4096TiB", "1KiB"]
    bounded = cli("bounds", "C[m,n] = sum(k, A[m,k]*B[k,n])", "--dims", "m=8,n=8,k=8", "--device", "mine.yaml")
    assert "Main -> Buffer 1024 bytes" in bounded.out


def test_device_import_of_what_is_no_architecture(cli, tmp_path, listing):
    before = listing()
    assert cli("device", "import", "gone.yaml").err == "error: gone.yaml: no such file\n  Check the path.\n"
    (tmp_path / "arch.yaml").write_text(FOREIGN.replace("8192", "many"))
    ran = cli("device", "import", "arch.yaml", "-o", "mine.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: arch.yaml:5:34: 'many' has no value here")
    assert set(listing()) == {*before, "arch.yaml"}
