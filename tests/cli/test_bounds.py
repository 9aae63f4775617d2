"""`tilec bounds`: what it prints, forms, errors, exit codes, how fast it starts."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from cli import models
from tilec.extras import install

GEMM = "C[m,n] = sum(k, A[m,k]*B[k,n])"
SQUARE = (GEMM, "--dims", "m=4096,n=4096,k=4096")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.feature("O01", "O05", "O35")
def test_a_table_with_capacity_mapspace_traffic_and_mapping(cli, golden):
    ran = cli("bounds", *SQUARE, "--capacity", "1MiB", "--capacity", "40MiB,40MB", "--mapspace", "oro")
    assert (ran.code, ran.err) == (0, "")
    golden("bounds-gemm.txt", ran.out)


@pytest.mark.feature("O09")
def test_levels_of_a_device(cli, golden):
    ran = cli("bounds", *SQUARE, "--device", "a100", "--dtype", "A=f16,B=i8,C=f32", "--mapspace", "oro")
    assert (ran.code, ran.err) == (0, "")
    golden("bounds-a100.txt", ran.out)


def test_usual_capacities_without_any(cli):
    ran = cli("bounds", GEMM, "--dims", "m=6,n=5", "--dims", "k=4", "--bits", "8")
    assert [line.split()[0] for line in ran.out.splitlines()[3:-4:3]] == ["4B", "16B", "29B"]


def test_one_mapspace(cli):
    ran = cli("bounds", *SQUARE, "--mapspace", "oro", "--capacity", "1MiB", "--json")
    told = json.loads(ran.out)
    assert set(told["mapspaces"]) == {"oro", "lb"}
    assert told["subjects"][0]["bounds"][0]["oro"]["traffic_bytes"] == 1600 * 2**20


def test_csv_on_standard_output_and_in_a_file(cli, tmp_path):
    ran = cli("bounds", *SQUARE, "--csv", "-", "--mapspace", "oro")
    assert ran.code == 0
    assert len(list(csv.DictReader(io.StringIO(ran.out)))) == 25
    other = cli("bounds", *SQUARE, "--csv", "rows.csv", "--json", "--mapspace", "oro")
    assert (tmp_path / "rows.csv").read_text() == ran.out
    assert other.err == "csv: rows.csv\n"
    assert len(json.loads(other.out)["subjects"][0]["curves"]["oro"]) == 25


@pytest.mark.feature("O07", "O08")
def test_plots(cli, tmp_path):
    arguments = ("bounds", GEMM, "--dims", "m=6,n=5,k=4", "--plot", "slope.svg", "--device", "a100")
    ran = cli(*arguments)
    assert (ran.code, ran.err) == (0, "plot: slope.svg\n")
    assert "Performance mesa: a100" in (tmp_path / "slope.svg").read_text()
    assert cli(*arguments, "--quiet").err == ""


@pytest.mark.feature("O29", "O35")
def test_a_workload_tells_its_convention_and_what_was_measured(cli, golden):
    ran = cli("bounds", "bounds/gemm-4k")
    assert (ran.code, ran.err) == (0, "")
    golden("bounds-workload.txt", ran.out)
    told = json.loads(cli("bounds", "bounds/gemm-4k", "--mapspace", "all", "--capacity", "40MiB", "--json").out)
    assert told["subjects"][0]["notes"][0].startswith("convention: 4-byte words")
    assert set(told["mapspaces"]) == {"oro", "oro+", "lb"}


@pytest.mark.feature("O35")
def test_a_model_and_its_graph(cli, golden, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    arguments = ("--shape", "batch=64", "--capacity", "4KiB", "--mapspace", "oro")
    ran = cli("bounds", "model.onnx", *arguments)
    assert ran.code == 0
    assert [line.split(":")[0] for line in ran.err.splitlines()] == ["import", "bounds"]
    golden("bounds-model.txt", ran.out)
    assert cli("import", "model.onnx").code == 0
    again = cli("bounds", "model.tilec", *arguments, "--quiet")
    assert (again.out, again.err) == (ran.out, "")


@pytest.mark.parametrize("make", [models.selection, models.doubling, models.contributed, models.given_sequence])
def test_what_onnxruntime_runs_is_left_out(cli, tmp_path, make):
    make(tmp_path / "model.onnx")
    ran = cli("bounds", "model.onnx", "--mapspace", "oro", "--capacity", "1MiB", "--json")
    assert ran.code == 0, ran.err
    whole = json.loads(ran.out)["subjects"][-1]
    (at,) = whole["bounds"]
    assert at["best known"]["traffic_bytes"] >= at["lb"]["traffic_bytes"] == whole["compulsory_bytes"]


def test_an_illegal_graph_is_refused(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    cli("import", "model.onnx", "-o", "g.json")
    text = (tmp_path / "g.json").read_text().replace("[k, n]", "[k, n, n]")
    (tmp_path / "g.json").write_text(text)
    ran = cli("bounds", "g.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: g.json: illegal graph: ")


def test_rows_of_a_model_as_csv(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch=4)
    rows = list(csv.DictReader(io.StringIO(cli("bounds", "model.onnx", "--device", "a100", "--csv", "-").out)))
    assert {row["name"] for row in rows} == {"h0", "y", "h0 ... y", "model"}
    assert {row["level"] for row in rows} == {"l2", "smem", "reg"}
    whole = [row for row in rows if row["mapspace"] == "best known"]
    assert [row["accesses_words"] for row in whole] == ["", "", ""]


def test_of_a_model_the_whole_graph_is_drawn(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch=4)
    assert cli("bounds", "model.onnx", "--mapspace", "oro", "--plot", "m.svg").code == 0
    text = (tmp_path / "m.svg").read_text()
    assert "<!-- best known -->" in text
    assert "<!-- oro -->" not in text


def test_plots_without_matplotlib_name_the_extra(cli, monkeypatch, listing):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("bounds", *SQUARE, "--plot", "slope.svg")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err == f"error: slope.svg: pictures need matplotlib\n  {install('plot')}\n"
    assert listing() == {}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("C[m,n] = sum(k, A[m,k)",), 2, "column"),
        ((GEMM,), 2, "no extent for iterator m, n, k"),
        ((*SQUARE, "--dims", "m=5"), 2, "--dims: m is given twice: 4096 and 5"),
        ((*SQUARE, "--dims", "l=5"), 2, "l is not an iterator of the Einsum\n  Iterators are m, n, k."),
        ((GEMM, "--dims", "m=0,n=1,k=1"), 2, "the extent of m is 0"),
        ((GEMM, "--dims", "4"), 2, "--dims: '4' names no iterator"),
        ((GEMM, "--dims", "m=10000000000000000"), 2, "--dims: 10000000000000000 is beyond every size"),
        ((GEMM, "--dims", "m=x"), 2, "--dims: 'x' is not a whole number"),
        ((*SQUARE, "--capacity", "40"), 2, "--capacity: '40' has no unit; write bytes as '164KiB'"),
        ((*SQUARE, "--capacity", "40MIB"), 2, "--capacity: '40MIB' has the unit 'MIB'; did you mean 'MiB'?"),
        ((*SQUARE, "--dtype", "f33"), 2, "--dtype: no element type is called 'f33'\n  Did you mean 'f32'?"),
        ((*SQUARE, "--dtype", "f32", "--bits", "8"), 2, "--dtype and --bits both say how large elements are"),
        ((*SQUARE, "--bits", "A=8"), 2, "no element size for tensor C"),
        ((*SQUARE, "--device", "a10"), 2, "no device is called 'a10'\n  Did you mean 'a100'?"),
        ((*SQUARE, "--shape", "batch=1"), 2, "--shape: an Einsum takes no --shape\n  Use --dims."),
        ((*SQUARE, "--plot", "a.gif"), 2, "a.gif: cannot draw a .gif\n  Name it .png or .svg."),
        ((*SQUARE, "--json", "--csv", "-"), 2, "--json and --csv - both write to standard output"),
        ((*SQUARE, "--dtype", "f32,A=f16"), 2, "element sizes are given for all tensors and for some"),
        (("model.onnx",), 2, "model.onnx: no such file"),
        (("gemm.yaml",), 2, "gemm.yaml: no such file"),
        (("bounds/gemm-4", "--quiet"), 2, "no recipe is called 'bounds/gemm-4'\n  Did you mean 'bounds/gemm-4k'?"),
        (("bounds/gemm-4k", "--dims", "m=4"), 2, "--dims: what is no Einsum takes no --dims\n  Leave it out."),
        (("bounds/gemm-4k", "--shape", "m=4"), 2, "--shape: a workload takes no --shape"),
        (("default.yaml",), 2, "default.yaml: no such file\n  default without .yaml comes with tilec."),
        (("y[i] = A[i*i]", "--dims", "i=4"), 5, "an index is not a sum of iterators times whole numbers"),
    ],
)
def test_wrong_use(cli, arguments, code, said, listing):
    ran = cli("bounds", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith('{"error":' if "--json" in arguments else "error: ")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert listing() == {}


def heavy_libraries(names: tuple[str, ...], cache: object) -> str:
    """Those of the libraries that bounding an Einsum loads, in a process of its own with the given cache."""
    program = (
        f"import sys; sys.argv = ['tilec', 'bounds', {GEMM!r}, '--dims', 'm=64,n=64,k=64']\n"
        "from tilec.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"sys.exit(','.join(name for name in {names!r} if name in sys.modules) or 0)"
    )
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(cache)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout.startswith("C[m, n] = "), ran.stderr
    return ran.stderr


def test_an_einsum_needs_no_heavy_library_and_a_known_one_no_numpy(tmp_path):
    heavy = ("onnx", "onnxruntime", "tvm", "tvm_ffi", "matplotlib", "rich", "tilec.importer", "tilec.scheduler")
    assert heavy_libraries(heavy, tmp_path) == ""
    assert heavy_libraries((*heavy, "numpy"), tmp_path) == ""


@pytest.mark.feature("O10")
def test_tasks_for_many_units(cli):
    arguments = ("bounds", GEMM, "--dims", "m=128,n=768,k=768")
    rows = [line for line in cli(*arguments, "--device", "a100").out.splitlines() if "tasks m:" in line]
    assert [row.split()[:3] for row in rows] == [["parallel", "12.0", "MiB"]]
    told = json.loads(cli(*arguments, "--capacity", "448KiB", "--units", "108", "--json").out)
    (at,) = told["subjects"][0]["bounds"]
    assert (at["units"], at["parallel"]["traffic_bytes"]) == (108, 12 << 20)
    assert at["parallel"]["traffic_bytes"] > at["oro+"]["traffic_bytes"]
    assert "parallel" in told["mapspaces"]
    none = json.loads(
        cli("bounds", "y[i] = x[i] * x[i]", "--dims", "i=4", "--capacity", "1KiB", "--units", "5", "--json").out
    )
    assert none["subjects"][0]["bounds"][0]["parallel"]["because"].endswith("are fewer than 5 units")
    oro = cli(*arguments, "--capacity", "448KiB", "--units", "108", "--mapspace", "oro").out
    assert "parallel" not in oro
    assert cli(*arguments, "--units", "108").err.startswith("error: --units needs the capacity of a unit")


@pytest.mark.feature("O10")
def test_tasks_of_a_model(cli, tmp_path):
    models.mlp(tmp_path / "mlp.onnx")
    told = json.loads(cli("bounds", "mlp.onnx", "--capacity", "64KiB", "--units", "4", "--json").out)
    for subject in told["subjects"]:
        (at,) = subject["bounds"]
        known = at.get("best known") or at.get("oro+ fused") or at["oro+"]
        assert at["parallel"]["traffic_bytes"] >= known["traffic_bytes"]


def test_a_file_whose_name_looks_like_an_einsum_is_a_file(cli, tmp_path):
    models.mlp(tmp_path / "a[b=1].onnx")
    assert cli("bounds", "a[b=1].onnx", "--capacity", "64KiB").code == 0
    long = "C[m,n] = sum(k, A[m,k]*B[k,n])" + " + 0.0 * A[m,0]" * 30
    assert "File name too long" not in cli("bounds", long, "--dims", "m=4,n=4,k=4", "--capacity", "64KiB").err
