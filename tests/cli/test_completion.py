"""What shells complete: names and files, found without anything heavy."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from report.plans import base

from tilec.artifact import Artifact
from tilec.cli.completion import devices, edges, groups, nodes, recipes, sizes
from tilec.ir.codec import plan_to_json
from tilec.spec.resolve import packaged


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a device file, a folder and a plan, as the current one."""
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "mine.yaml").write_text("")
    (tmp_path / "a9.yaml").write_text("")
    (tmp_path / "a9.txt").write_text("")
    (tmp_path / "net.tilec").mkdir()
    Artifact("plan", {}, plan_to_json(base())).write(tmp_path / "net.tilec" / "2-plan.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(subject):
    return SimpleNamespace(params={"subject": subject}, args=[])


def test_devices_are_names_and_files(here):
    assert set(packaged("devices")) | {"host", "a9.yaml", "chips/", "net.tilec/"} == set(devices(""))
    assert devices("ho") == ["host"]
    assert devices("a100") == ["a100", "a100-host", "a100-ssd"]
    assert devices("a9") == ["a9.yaml"]
    assert devices("chips/") == ["chips/mine.yaml"]
    assert devices("chips/x") == devices("gone/") == devices("zzz") == []


def test_recipes_are_names_and_files(here):
    assert set(packaged("recipes")) <= set(recipes(""))
    assert "host" not in recipes("")
    assert recipes("chips/m") == ["chips/mine.yaml"]


@pytest.mark.parametrize("subject", ["net.tilec", "net.tilec/", "net.tilec/2-plan.json"])
def test_what_a_plan_can_be_asked(here, subject):
    assert groups(asked(subject), "") == ["r", "g", "y"]
    assert groups(asked(subject), "r") == ["r"]
    assert nodes(asked(subject), "") == ["h", "r", "g", "top", "y"]
    assert edges(asked(subject), "") == ["h->r", "top->y", "r->g"]
    assert edges(asked(subject), "r") == ["r->g"]


@pytest.mark.parametrize("model", ["bert.onnx", "bert.tilec", "bert.tilec/1-graph.json"])
def test_sizes_are_the_symbols_of_the_graph(here, model):
    (here / "bert.tilec").mkdir()
    (here / "bert.tilec" / "1-graph.json").write_text('{"symbols": ["batch", "seq"]}')
    context = SimpleNamespace(params={"model": model}, args=[])
    assert sizes(context, "") == ["batch=", "seq="]
    assert sizes(context, "batch=1,s") == ["batch=1,seq="]
    assert sizes(SimpleNamespace(params={}, args=["gone.onnx"]), "") == []


@pytest.mark.parametrize("subject", [None, "slower", "gone.json", "a9.txt", "chips", "list.json"])
def test_without_a_plan_nothing_is_completed(here, subject):
    (here / "list.json").write_text("[]")
    assert groups(asked(subject), "") == nodes(asked(subject), "") == edges(asked(subject), "") == []


@pytest.mark.quick_cases("tilec explain net.tilec --group -found4", "tilec explain net.tilec --edge top-found5")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("tilec schedule --device ipu", {"ipu-mk2", "ipu-mk2-host"}),
        ("tilec report --device rtx", {"rtx3090", "rtx4090", "rtx5090"}),
        ("tilec device show ipu", {"ipu-mk2", "ipu-mk2-host"}),
        ("tilec zoo export mobilenet", {"mobilenet-v2"}),
        ("tilec explain net.tilec --group ", {"r", "g", "y"}),
        ("tilec explain net.tilec --edge top", {"top->y"}),
    ],
)
def test_a_shell_asks_the_command(here, words, found):
    """As bash does it once `tilec --install-completion` was run."""
    count = len(words.split()) - (not words.endswith(" "))
    environment = {**os.environ, "_TILEC_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    code = "import sys; sys.argv = ['tilec']; from tilec.cli import app; app.run()"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=here)
    assert set(ran.stdout.split()) == found, ran.stderr


def test_completing_imports_nothing_heavy():
    code = (
        "import sys; from tilec.cli.completion import devices, recipes; devices(''); recipes('')\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'pydantic', 'tvm', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
