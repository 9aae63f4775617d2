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
from api.models import affine

from cli import models
from cli.test_main import ENVIRONMENT
from tilec.api import worker
from tilec.api.cache import Cache
from tilec.api.model_source import open_file, request_for
from tilec.api.request import keyed
from tilec.errors import UnsupportedError, UsageError
from tilec.runtime import load
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


@pytest.fixture
def dynamic(tmp_path, monkeypatch):
    """A model of any batch, a cache of its own, and the sizes that it was compiled for, as they come."""
    models.mlp(tmp_path / "model.onnx", batch="batch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    seen = []

    def build_(request):
        seen.append((dict(request.sizes), dict(request.ranges)))
        worker.build(request)

    monkeypatch.setattr("tilec.api.compiling._run", build_)
    return seen


AVX2 = ("--device", "avx2")
LIMITED = (*AVX2, "--bind", "batch=1..64")


def test_a_model_is_compiled_into_the_cache_once_for_all_sizes(cli, dynamic, tmp_path, x):
    ran = cli("run", "model.onnx", *LIMITED, "--input", "x=x.npy", "-o", "y.npy")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[0].startswith("compile: done in ")
    assert ran.err.splitlines()[1].startswith("output y: float32[4, 8], ")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected(tmp_path / "model.onnx", x), atol=1e-4)
    ran = cli("run", "model.onnx", *LIMITED, "--shape", "batch=2", "--shape", "batch=7", "--seed", "3")
    assert [line.split(",")[0] for line in ran.err.splitlines()] == [
        "shape batch=2:",
        "input x: random",
        "output y: float32[2",
        "shape batch=7:",
        "input x: random",
        "output y: float32[7",
    ]
    told = json.loads(cli("run", "model.onnx", *LIMITED, "--shape", "batch=2", "--shape", "batch=7", "--json").out)
    assert [run["sizes"] for run in told["runs"]] == [{"batch": 2}, {"batch": 7}]
    assert [run["outputs"]["y"]["shape"] for run in told["runs"]] == [[2, 8], [7, 8]]
    assert "float32[8, 8]" in cli("run", "model.onnx", *LIMITED).err  # the usual size of a batch
    assert dynamic == [({}, {"batch": (1, 64, 1)})]


def test_bound_sizes_are_compiled_for_alone(cli, dynamic):
    assert "float32[3, 8]" in cli("run", "model.onnx", *AVX2, "--bind", "batch=3").err
    assert dynamic == [({"batch": 3}, {})]
    ran = cli("run", "model.onnx", *AVX2, "--bind", "batch=3", "--shape", "batch=4")
    assert (ran.code, ran.err) == (2, "error: --shape batch=4: it is bound to 3\n  Leave one of the two out.\n")


def test_a_model_that_needs_its_sizes_is_compiled_for_those_of_the_run(cli, dynamic, monkeypatch):
    def refuse(request):
        if not request.sizes:
            raise UnsupportedError("the size batch is not bound", hint="--shape batch=SIZE")
        worker.build(request)

    monkeypatch.setattr("tilec.api.compiling._run", refuse)
    ran = cli("run", "model.onnx", *AVX2)
    assert (ran.code, ran.err.splitlines()[-2]) == (5, "error: the size batch is not bound")
    ran = cli("run", "model.onnx", *AVX2, "--shape", "batch=2")
    assert ran.err.splitlines()[1:3] == [
        "compiled for these sizes only: the size batch is not bound",
        "input x: random, seed 0",
    ]
    assert "compile: " not in cli("run", "model.onnx", *AVX2, "--shape", "batch=2").err


def test_sizes_that_do_not_fit(cli, dynamic, x):
    ran = cli("run", "model.onnx", *AVX2, "--shape", "bacth=2")
    assert (ran.code, ran.err) == (2, "error: --shape: the model has no symbol 'bacth'\n  Did you mean 'batch'?\n")
    ran = cli("run", "model.onnx", *AVX2, "--bind", "bacth=2")
    assert (ran.code, ran.err) == (2, "error: --bind: the model has no symbol 'bacth'\n  Did you mean 'batch'?\n")
    ran = cli("run", "model.onnx", *AVX2, "--bind", "batch=2..1")
    assert ran.err.startswith("error: --bind 'batch=2..1' holds no size")
    ran = cli("run", "model.onnx", *AVX2, "--shape", "batch=2", "--input", "x=x.npy")
    assert (ran.code, ran.err) == (2, "error: input 'x' has size 4 along dimension 0, expected was 2\n")
    assert dynamic == []
    ran = cli("run", "model.onnx", *LIMITED, "--shape", "batch=65")
    assert ran.code == 2
    assert "error: input 'x' has 65 along dimension 0, the model takes 1 to 64 for batch" in ran.err


def test_a_folder_for_all_sizes_runs_at_those_given(cli, dynamic, tmp_path, x):
    assert cli("compile", "model.onnx", *AVX2, "--shape", "batch=1..64", "--to", "codegen").code == 0
    ran = cli("run", "model.tilec", "--shape", "batch=5", "--shape", "batch=6")
    assert "float32[5, 8]" in ran.err
    assert "float32[6, 8]" in ran.err
    ran = cli("run", "model.tilec", "--shape", "batch=5", "--input", "x=x.npy", "--input", "y=x.npy")
    assert ran.code == 2
    ran = cli("run", "model.tilec", "--shape", "n=5")
    assert (ran.code, ran.err) == (2, "error: --shape: the model has no size 'n'\n  Its sizes are batch.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "z=x.npy"], "--input: the model has no input 'z'\n  The inputs are 'x'."),
        (["--input", "x"], "--input 'x' gives no input\n  Write it like --input x=x.npy."),
        (["--input", "x=none.npy"], "none.npy: no such file"),
        (["--input", "x=model.onnx"], "model.onnx: this is no file of NumPy arrays: "),
        (["--input", "x=cut.npz"], "cut.npz: "),
        (["--input", "x=objects.npy"], "objects.npy: this is no file of NumPy arrays: "),
        (["--input", "x=two.npz"], "two.npz: there is no 'x' in it\n  It holds 'a', 'b'."),
        (["--input", "x=wide.npy"], "input 'x' has shape [5, 16], the model has [4, 16]"),
        (["--input", "x=double.npy"], "input 'x' has element type float64, the model has float32"),
        (["-o", "y.txt"], "y.txt: this is no .npz or .npy file"),
        (["--shape", "batch=1"], "--shape: the sizes of a compiled model are fixed"),
        (["--bind", "batch=1"], "--bind: this model is compiled already\n  Name the ONNX file instead."),
        (["--shape", "n=1", "--shape", "n=2", "-o", "y.npz"], "y.npz: the outputs of 2 runs do not fit into one file"),
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
    assert (ran.code, ran.err.splitlines()[-2]) == (
        2,
        "error: out.npz: output 'twice' is text, which is not written to NumPy's files",
    )
    ran = cli("run", "pieces.onnx")
    assert (ran.code, ran.err.splitlines()[-2]) == (
        2,
        "error: input 's', seq(tensor(float)), cannot be drawn at random",
    )


def test_an_input_with_a_value_in_the_model_takes_that_value(cli, tmp_path):
    (tmp_path / "model.onnx").write_bytes(affine().SerializeToString())
    assert cli("compile", "model.onnx", "--device", "avx2").code == 0
    session = load(tmp_path / "model.tilec")
    assert [spec.name for spec in session.defaults] == ["b"]
    x, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones(2, np.float32)
    for feeds in ({"x": x}, {"x": x, "b": b}, {"x": x, "b": np.ones(4, np.float32)[::2]}):
        np.testing.assert_array_equal(session.run(feeds)["y"], 2 * x + 1)
    for wrong, said in ((2 * b, "'b' was compiled in with another value"), (b[:1], "'b' has shape")):
        with pytest.raises(UsageError, match=said):
            session.run({"x": x, "b": wrong})
    np.save(tmp_path / "b.npy", b)
    assert cli("run", "model.tilec", "--input", "b=b.npy").code == 0
    np.save(tmp_path / "b.npy", 3 * b)
    ran = cli("run", "model.tilec", "--input", "b=b.npy")
    assert (ran.code, "remove its initializer" in ran.err) == (2, True)


def test_an_unknown_input_is_refused_before_anything_is_compiled(cli, dynamic):
    ran = cli("run", "model.onnx", *AVX2, "--input", "nosuch=random")
    assert (ran.code, ran.err) == (2, "error: --input: the model has no input 'nosuch'\n  The inputs are 'x'.\n")
    assert dynamic == []
