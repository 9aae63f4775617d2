"""`tilec inspect`: models and artifacts as text and as JSON."""

import json
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from cli import models
from cli.test_main import ENVIRONMENT
from tilec.ir.expr import Const
from tilec.ir.plan import Variant
from tilec.scheduler.tuning.decision import Decision
from tilec.scheduler.tuning.record import Entry, Record, Trial, record_text
from tilec.scheduler.tuning.signature import Signature
from tilec.spec.resolve import resolve_device


def test_a_model_as_text(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    size = (tmp_path / "model.onnx").stat().st_size
    assert cli("inspect", "model.onnx").out == (
        "model\n"
        "  file                      model.onnx\n"
        f"  size                      {size / 1024:.1f} KiB\n"
        "  ir version                8\n"
        "  opsets\n"
        "    ai.onnx  17\n"
        "  graph                     g\n"
        "  version                   0\n"
        "  inputs\n"
        "    x  tensor(float)  [batch, 16]\n"
        "  outputs\n"
        "    y  tensor(float)  [batch, 8]\n"
        "  symbols                   batch\n"
        "  nodes                     4\n"
        "  operators\n"
        "    MatMul  2\n"
        "    Add     1\n"
        "    Relu    1\n"
        "  parameters                800\n"
        "  parameter bytes           3.1 KiB\n"
    )


def test_a_model_as_json(cli, tmp_path):
    models.external(tmp_path / "model.onnx")
    told = json.loads(cli("inspect", "model.onnx", "--json").out)
    assert told["kind"] == "model"
    assert told["external_data"] == [{"file": "model.data", "bytes": (tmp_path / "model.data").stat().st_size}]
    assert told["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": [4, 16]}]
    assert (told["parameters"], told["parameter_bytes"]) == (800, 3200)
    (tmp_path / "model.data").unlink()
    assert json.loads(cli("inspect", "model.onnx", "--json").out)["external_data"][0]["bytes"] is None


def test_operators_inside_branches_functions_and_domains_count(cli, tmp_path):
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [models.value("r", 4)])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Strange", ["x"], ["z"], domain="mine"),
    ]
    models.save(
        tmp_path / "model.onnx",
        nodes,
        [models.value("x", 4), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [models.value("y", 4), models.value("z", 4)],
    )
    model = onnx.load(str(tmp_path / "model.onnx"))
    inner = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function("mine", "Strange", ["a"], ["b"], inner, [helper.make_opsetid("", 17)]))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    told = json.loads(cli("inspect", "model.onnx", "--json").out)
    assert told["operators"] == {"If": 1, "Neg": 1, "Relu": 2, "mine.Strange": 1}
    assert told["functions"] == ["mine.Strange"]


def test_text_that_is_no_text_is_shown_as_far_as_it_goes(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    model = onnx.load(str(tmp_path / "model.onnx"))
    model.producer_name = "ab"
    data = model.SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data.replace(b"\x12\x02ab", b"\x12\x02a\xff"))
    assert json.loads(cli("inspect", "model.onnx", "--json").out)["producer"] == "a\ufffd"


def test_a_compiled_folder(cli, build):
    text = cli("inspect", "model.tilec").out
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert heads == ["graph", "plan", "kernels", "report", "run"]
    assert "  verified on               host" in text.splitlines()
    found = json.loads(cli("inspect", "model.tilec", "--json").out)
    assert found["graph"]["placement"] == {"compiled": 4, "total": 4}
    assert found["plan"]["groups"] == found["plan"]["launches"] > 0
    assert found["plan"]["traffic_bytes"] > 0
    lowest, core = (found["plan"]["per_level"][name] for name in ("dram", resolve_device("host").core_level))
    assert lowest["transacted_bytes"] >= core["read_bytes"] + core["written_bytes"] > 0
    assert lowest["transactions"] > 0
    assert found["plan"]["fused_patterns"] == 1
    assert "  fused patterns            1" in text.splitlines()
    assert "transactions" in text
    assert found["kernels"]["library"].endswith(".a")
    assert found["kernels"]["library_bytes"] > 0
    assert found["report"]["verdict"] == "pass"
    assert found["run"]["latency_us"] > 0


@pytest.mark.parametrize("kind", ["graph", "plan", "kernels", "report"])
def test_one_artifact_with_its_origin(cli, build, kind):
    from tilec.pipeline import FILES

    told = json.loads(cli("inspect", f"model.tilec/{FILES[kind]}", "--json").out)
    assert (told["kind"], told["edited"]) == (kind, False)
    header = json.loads((build / FILES[kind]).read_text())["artifact"]
    assert told["made_from"] == {role: digest[:12] for role, digest in header["inputs"].items()}


def test_nodes_on_onnxruntime_are_listed_with_the_reason(cli, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"], name="where")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])]
    models.save(tmp_path / "model.onnx", nodes, [models.value("x", 4)], outputs)
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
    told = json.loads(cli("inspect", "model.tilec", "--json").out)
    assert [(node["node"], node["op"]) for node in told["plan"]["on_onnxruntime"]] == [("where", "NonZero")]
    assert told["kernels"]["onnxruntime_calls"] == 1
    assert "NonZero" in cli("inspect", "model.tilec").out


def test_an_edit_shows(cli, build):
    plan = build / "2-plan.json"
    plan.write_text(plan.read_text().replace('"name": "model"', '"name": "mine"'))
    assert "  edited                    yes" in cli("inspect", "model.tilec/2-plan.json").out.splitlines()


@pytest.mark.parametrize("part", ["runtime", "programs"])
def test_a_damaged_artifact(cli, build, part):
    kernels = build / "3-kernels.json"
    kernels.write_text(
        json.dumps({**json.loads(kernels.read_text()), part: {"library": 3, "inputs": 3} if part == "runtime" else 3})
    )
    ran = cli("inspect", "model.tilec/3-kernels.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: model.tilec/3-kernels.json: this is no kernels: ")
    assert ran.err.endswith("Run `tilec codegen` again.\n")


def test_a_plan_for_another_device(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="n")
    assert cli("compile", "model.onnx", "--device", "a100", "--to", "schedule").code == 0
    told = json.loads(cli("inspect", "model.tilec", "--json").out)
    assert (told["plan"]["device"], told["plan"]["symbols"]) == ("a100", ["n"])
    (size,) = told["plan"]["sizes"]
    assert (size["symbol"], size["allowed"]) == ("n", "0..")
    assert told["plan"]["figures_at"] == f"n={size['made_for']}"
    assert told["plan"]["variants"] == sum(told["plan"]["guards"].values()) >= 1
    moved = told["plan"]["traffic_bytes"]
    there = json.loads(cli("inspect", "model.tilec", "--json", "--shape", "n=1000").out)["plan"]
    assert there["figures_at"] == "n=1000"
    assert there["traffic_bytes"] > moved > 0
    text = cli("inspect", "model.tilec/2-plan.json").out
    assert f"planned at {size['made_for']}" in text
    wrong = cli("inspect", "model.tilec", "--shape", "m=1")
    assert (wrong.code, "the plan has no symbol 'm'" in wrong.err) == (2, True)
    none = cli("inspect", "model.onnx", "--shape", "n=1")
    assert (none.code, "--shape looks at a plan" in none.err) == (2, True)
    assert cli("inspect", "model.tilec").code == 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("none.onnx", "none.onnx: no such file"),
        ("none.json", "none.json: no such file"),
        ("empty", "empty: there is no artifact in this folder\n  `tilec compile` writes some."),
        ("text.json", "text.json: not an artifact of tilec"),
        ("text.onnx", "text.onnx: this is not an ONNX model: "),
        ("other.json", "other.json: not a tilec artifact: it has no header"),
        ("odd.json", "odd.json: not a tilec artifact: it has no header"),
    ],
)
def test_refusals(cli, tmp_path, file, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("[1]")
    (tmp_path / "other.json").write_text('{"artifact": {"kind": "soup"}}')
    (tmp_path / "odd.json").write_text('{"artifact": {"kind": {}}}')
    (tmp_path / "text.onnx").write_text("hello")
    ran = cli("inspect", file)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")


def test_tvm_is_never_imported(build):
    program = (
        "import sys; sys.argv = ['tilec', 'inspect', sys.argv[1]]\n"
        "from tilec.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.exit('tvm' in sys.modules or 'tvm_ffi' in sys.modules)"
    )
    for path in (build, build.parent / "model.onnx"):
        ran = subprocess.run([sys.executable, "-c", program, path], env=ENVIRONMENT, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


def test_energy_of_groups_where_the_device_tells_it(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch=4)
    for device, known in (("a100", True), ("avx2", False)):
        assert cli("compile", "model.onnx", "--device", device, "--to", "schedule", "-o", device).code == 0
        told = json.loads(cli("inspect", f"{device}/2-plan.json", "--json").out)
        assert ("energy_femtojoules" in told) == known
        if known:
            groups = told["per_group"].values()
            spent = sum(each["moving_femtojoules"] + each["computing_femtojoules"] for each in groups)
            assert spent == told["energy_femtojoules"]
            assert sum(each["traffic_bytes"] for each in groups) == told["traffic_bytes"]
            assert told["energy_leaves_out"] == []
            assert "  energy                    " in cli("inspect", "a100/2-plan.json").out


def test_single_groups_and_nodes(cli, build):
    told = json.loads(cli("inspect", "model.tilec/2-plan.json", "--select", "relu", "--json").out)
    assert told["kind"] == "plan"
    (group,) = told["selected"]
    assert {"MatMul", "Relu"} <= set(group["operators"])
    assert "relu" in group["from"]
    body = json.loads((build / "2-plan.json").read_text())
    (row,) = (each for each in body["groups"] if each["name"] == group["name"])
    lowest = next(level for level in row["cost"]["read"] if row["cost"]["read"][level])
    assert group["per_level"][lowest]["read_bytes"] == row["cost"]["read"][lowest]
    assert group["connect"] == row["connect"]
    assert group["decisions"]["kernel"] == row["variants"][0]["kernel"]
    assert group["expressions"]["h2"] == "h2[i, j] = maximum(h1[i, j], 0)"


def test_a_glob_over_a_folder_and_a_model(cli, build):
    text = cli("inspect", "model.tilec", "--select", "h?").out
    heads = [line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")]
    assert heads[:3] == ["graph", "graph", "graph"]
    assert "plan" in heads
    step = json.loads(cli("inspect", "model.tilec/3-kernels.json", "--select", "*", "--json").out)["selected"][0]
    assert (build / step["program"]).is_file()
    assert "compared" not in text
    nodes = json.loads(cli("inspect", "model.onnx", "--select", "MatMul", "--json").out)["selected"]
    assert [node["name"] for node in nodes] == ["first", "second"]
    assert nodes[1]["inputs"] == ["h2", "w2"]
    many = json.loads(cli("inspect", "model.onnx", "--select", "first", "--select", "bias", "--json").out)
    assert len(many["selected"]) == 2


def test_a_name_that_nothing_has(cli, build):
    ran = cli("inspect", "model.tilec", "--select", "h2", "--select", "relv")
    assert (ran.code, ran.out) == (2, "")
    assert "model.tilec: nothing is called 'relv'\n  Did you mean 'relu'?" in ran.err
    (build.parent / "empty").mkdir()
    assert cli("inspect", "empty", "--select", "h2").code == 2


def test_a_tuning_record(cli, tmp_path):
    """How well the cost model knew the candidates that were measured."""
    decided = (Decision({}, (Variant(Const(True), ("dram",), {}, {}, ""),)),)
    trials = tuple(Trial(decided, measured, predicted) for measured, predicted in ((300, 100), (200, 110), (400, 130)))
    entry = Entry(Signature("s", "MatMul", (), ("f32[4]",)), {"device": "d"}, trials, 1)
    (tmp_path / "tuning.json").write_text(record_text(Record().merged(entry)))
    facts = json.loads(cli("inspect", "tuning.json", "--json").out)
    assert (facts["kind"], facts["groups"], facts["correlation"], facts["largest_loss"]) == ("tuning", 1, 0.5, 0.5)
    assert [row["group"] for row in facts["per_group"]] == ["MatMul f32[4]"]
    assert "  largest loss              0.5\n" in cli("inspect", "tuning.json").out
