"""`tilec run`: inputs from files and at random, outputs to a file, what is said and refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cli import models
from cli.test_main import ENVIRONMENT
from tilec.api import worker
from tilec.api.cache import Cache
from tilec.api.model_source import open_file, request_for
from tilec.api.request import keyed
from tilec.spec.probe import cache_folder, probed_text


@pytest.fixture
def x(tmp_path):
    array = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", array)
    return array


def expected(model, x):
    import onnxruntime

    return onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]


def test_outputs_go_to_a_file_and_a_summary_to_stderr(cli, build, tmp_path, x):
    ran = cli("run", "model.tilec", "--input", "x=x.npy", "-o", "out/y.npz")
    assert (ran.code, ran.out) == (0, "")
    y = np.load(tmp_path / "out" / "y.npz")["y"]
    np.testing.assert_allclose(y, expected(tmp_path / "model.onnx", x), atol=1e-4)
    mean = f"min {y.min():.6g}, mean {y.astype(np.float64).mean():.6g}, max {y.max():.6g}"
    assert ran.err == f"output y: float32[4, 8], {mean}\n"
    cli("run", "model.tilec", "--input", "x=x.npy", "-o", "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), y)


def test_json_tells_outputs_times_and_what_was_random(cli, build, x):
    ran = cli("run", "model.tilec", "--json", "--repeat", "3", "--seed", "5")
    told = json.loads(ran.out)
    assert (told["random"], told["seed"], told["latency_s"]["runs"]) == (["x"], 5, 3)
    assert 0 < told["latency_s"]["fastest"] <= told["latency_s"]["median"]
    assert (told["outputs"]["y"]["shape"], told["outputs"]["y"]["type"]) == ([4, 8], "float32")
    assert ran.err.splitlines()[0] == "input x: random, seed 5"
    assert ran.err.splitlines()[1].startswith("latency: median ")
    again = json.loads(cli("run", "model.tilec", "--json", "--seed", "5", "--input", "x=random").out)
    assert again["outputs"] == told["outputs"]
    assert json.loads(cli("run", "model.tilec", "--json").out)["outputs"] != told["outputs"]


def test_odd_numbers_are_counted(cli, build, tmp_path, x):
    x[0, 0], x[1, 0] = np.nan, np.inf
    np.savez(tmp_path / "in.npz", x=x, other=x)
    ran = cli("run", "model.tilec", "--input", "x=in.npz")
    assert ran.code == 0
    assert ran.err.endswith(" nan\n") or " nan, " in ran.err
    assert "input" not in ran.err


def test_an_archive_alone_gives_all_inputs(cli, build, tmp_path, x):
    np.savez(tmp_path / "in.npz", x=x)
    assert "random" not in cli("run", "model.tilec", "--input", "in.npz").err
    np.savez(tmp_path / "one.npz", something=x)
    assert cli("run", "model.tilec", "--input", "x=one.npz").code == 0


def test_a_model_is_compiled_into_the_cache(cli, listing, tmp_path, x, monkeypatch):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    monkeypatch.setattr("tilec.api.compiling._run", worker.build)
    before = listing()
    ran = cli("run", "model.onnx", "--input", "x=x.npy")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[0].startswith("compile: done in ")
    assert ran.err.splitlines()[1].startswith("output y: float32[4, 8], ")
    assert "float32[2, 8]" in cli("run", "model.onnx", "--shape", "batch=2").err
    assert listing() == before
    ran = cli("run", "model.onnx")
    assert (ran.code, ran.err) == (
        2,
        "error: model.onnx: the size batch is not known\n  Bind it with --shape batch=SIZE.\n",
    )
    ran = cli("run", "model.onnx", "--shape", "bacth=2")
    assert (ran.code, ran.err) == (
        2,
        "error: --shape: the model has no symbol 'bacth'\n  Did you mean 'batch'?\n",
    )
    ran = cli("run", "model.onnx", "--shape", "batch=2", "--input", "x=x.npy")
    assert (ran.code, ran.err) == (2, "error: input 'x' has size 4 along dimension 0, expected was 2\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "z=x.npy"], "--input: the model has no input 'z'\n  The inputs are 'x'."),
        (["--input", "x"], "--input 'x' gives no input\n  Write it like --input x=x.npy."),
        (["--input", "x=none.npy"], "none.npy: cannot read the file: No such file or directory"),
        (["--input", "x=model.onnx"], "model.onnx: this is no file of NumPy arrays: "),
        (["--input", "x=cut.npz"], "cut.npz: "),
        (["--input", "x=objects.npy"], "objects.npy: this is no file of NumPy arrays: "),
        (["--input", "x=two.npz"], "two.npz: there is no 'x' in it\n  It holds 'a', 'b'."),
        (["--input", "x=wide.npy"], "input 'x' has shape [5, 16], the model has [4, 16]"),
        (["--input", "x=double.npy"], "input 'x' has element type float64, the model has float32"),
        (["-o", "y.txt"], "y.txt: outputs are written as .npz, or as .npy when there is one"),
        (["--shape", "batch=1"], "--shape: the sizes of a compiled model are fixed"),
    ],
)
def test_refusals(cli, build, tmp_path, x, listing, arguments, said):
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=x, b=x)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:200])
    np.save(tmp_path / "wide.npy", np.zeros((5, 16), np.float32))
    np.save(tmp_path / "double.npy", x.astype(np.float64))
    before = listing()
    ran = cli("run", "model.tilec", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")
    assert listing() == before


def test_what_cannot_be_run(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no such file" in cli("run", "empty").err
    ran = cli("run", "none.onnx")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: none.onnx: no such file")


def test_an_output_that_cannot_be_written(cli, build, x):
    ran = cli("run", "model.tilec", "--input", "x=x.npy", "-o", "/proc/y.npz")
    assert ran.code == 1
    assert ran.err.splitlines()[-2].startswith("error: /proc: cannot write y.npz: ")


def test_ctrl_c_while_a_model_is_compiled(tmp_path):
    """The compiler waits for the lock that is held here."""
    models.mlp(tmp_path / "model.onnx")
    home = tmp_path / "home" / "tilec"
    home.mkdir(parents=True)
    probed_text()
    for known in cache_folder().glob("host-*.yaml"):
        shutil.copy(known, home)
    request = keyed(request_for(open_file(tmp_path / "model.onnx", tmp_path / "other"), "host", None, {}, home))
    with Cache(home).locked(request.key):
        running = subprocess.Popen(
            [sys.executable, "-m", "tilec", "run", "model.onnx"],
            cwd=tmp_path,
            env={**ENVIRONMENT, "XDG_CACHE_HOME": str(home.parent)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while not list(home.glob("models/*/header-*.json")):
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, err.splitlines()[-1]) == (130, "error: interrupted")
    assert [path.suffix for path in home.glob("sessions/*")] == [".lock"]


def test_values_that_no_file_holds(cli, tmp_path, monkeypatch):
    from api import models as others

    monkeypatch.setattr("tilec.api.compiling._run", worker.build)
    (tmp_path / "words.onnx").write_bytes(others.words().SerializeToString())
    (tmp_path / "pieces.onnx").write_bytes(others.pieces().SerializeToString())
    ran = cli("run", "words.onnx")
    assert ran.code == 0, ran.err
    assert "output twice: object[3]" in ran.err
    ran = cli("run", "words.onnx", "-o", "out.npz")
    assert (ran.code, ran.err.splitlines()[-1]) == (
        2,
        "error: out.npz: output 'twice' is text, which is not written to NumPy's files",
    )
    ran = cli("run", "pieces.onnx")
    assert (ran.code, ran.err.splitlines()[-2]) == (
        2,
        "error: input 's', seq(tensor(float)), cannot be drawn at random",
    )
