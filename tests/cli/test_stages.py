"""Stages for devices that are not here, symbolic sizes, pipes, recipes and their errors."""

import io
import json
import platform
import re
import shutil
import sys

import pytest
from onnx import helper

from cli import models
from tilec.scheduler.pipeline import SEARCH


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def dynamic(tmp_path):
    return models.mlp(tmp_path / "model.onnx", "batch")


@pytest.mark.feature("W21")
def test_a_device_without_code_generator_is_verified_on_the_tile_machine(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("compile", "model.onnx", "--device", "ipu-mk2")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "verified on: tile machine (no ipu-mk2 code generator yet)"
    build = tmp_path / "model.tilec"
    assert list(build.glob("programs/*.txt"))
    report = json.loads((build / "4-report.json").read_text())
    assert (report["verdict"], report["verified_on"]) == ("pass", "tile machine")
    assert report["groups"]["verified"] == report["groups"]["total"] == len(report["traffic"])
    for moved in report["traffic"].values():
        assert all(sum(both) > 0 for both in moved["counted"].values())
    assert cli("compile", "model.onnx", "--device", "ipu-mk2").err.count("skipped") == 4


def test_a_model_has_its_kernels_as_text_with_their_launches(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("compile", "model.onnx", "--device", "a100", "--to", "codegen")
    assert ran.code == 0, ran.err
    build = tmp_path / "model.tilec"
    code = json.loads((build / "3-kernels.json").read_text())["runtime"]["gpu"]
    text = (build / code["text"]["file"]).read_text()
    assert [text.count(f" {kernel['symbol']}(") for kernel in code["kernels"]] == [1] * len(code["kernels"])
    assert all(kernel["block"] % 32 == 0 and kernel["grid"] >= 1 for kernel in code["kernels"])
    assert (build / "tile.h").is_file()
    said = "kernels are text only" in ran.err
    assert said == ("binary" not in code)
    if shutil.which("g++"):
        ran = cli("verify", "model.tilec")
        assert ran.code == 0, ran.err
        assert "verified on: emulator" in ran.err


def test_code_for_another_processor_is_verified_on_the_tile_machine(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    other = "neon" if platform.machine() in ("x86_64", "AMD64") else "avx2"
    ran = cli("compile", "model.onnx", "--device", other)
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == f"verified on: tile machine (this machine does not run {other} code)"
    assert list((tmp_path / "model.tilec").glob("*.a"))


def test_verbose_lists_groups_and_errors(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    lines = cli("compile", "model.onnx", "--device", "a100", "-v").err.splitlines()
    assert any(re.fullmatch(r"  \w+: MatMul Add Relu -> \w+, smem .* at least .*", line) for line in lines)
    for seed in (0, 1):
        assert any(line.startswith(f"  y, seed {seed}: off by ") and line.endswith(" is allowed") for line in lines)
    assert " -> " not in cli("compile", "model.onnx", "--device", "a100").err


def test_stages_one_and_two_need_no_tvm(cli, tmp_path, monkeypatch):
    models.mlp(tmp_path / "model.onnx")
    for name in ("tvm", "tvm_ffi", "tvm_ffi_orcjit"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli("compile", "model.onnx", "--device", "a100", "--to", "schedule").code == 0


def test_binding_at_import_and_at_schedule_give_the_same_plan(cli, dynamic, tmp_path, monkeypatch):
    assert cli("import", "model.onnx", "--shape", "batch=3", "-o", "one").code == 0
    assert cli("schedule", "one", "--device", "a100").code == 0
    graph = cli("import", "model.onnx", "-o", "-").out
    assert json.loads(graph)["symbols"] == ["batch"]
    piped(monkeypatch, graph)
    plan = cli("schedule", "-", "--device", "a100", "--shape", "batch=3", "-o", "-").out
    assert plan == (tmp_path / "one" / "2-plan.json").read_text()
    (tmp_path / "recipe.yaml").write_text("kind: compile\nshapes: {batch: 3, seq: 7}\n")
    piped(monkeypatch, graph)
    assert cli("schedule", "-", "--device", "a100", "--recipe", "recipe.yaml", "-o", "-").out == plan
    assert json.loads(plan)["symbols"] == []


@pytest.mark.feature("B07")
def test_ranges_at_import_and_at_schedule_give_the_same_plan(cli, dynamic, tmp_path, monkeypatch):
    assert cli("import", "model.onnx", "--shape", "batch=8..64/8", "-o", "one").code == 0
    known = {"low": 8, "high": 64, "divisor": 8, "origin": "recipe: shapes.batch"}
    assert json.loads((tmp_path / "one" / "1-graph.json").read_text())["symbol_ranges"] == {"batch": known}
    assert cli("schedule", "one", "--device", "a100").code == 0
    plan = (tmp_path / "one" / "2-plan.json").read_text()
    (tmp_path / "recipe.yaml").write_text("shapes: {batch: {range: [8, 64], divisor: 8}, seq: {likely: [7]}}\n")
    for folder, how in (("two", ["--shape", "batch=8..64/8"]), ("three", ["--recipe", "recipe.yaml"])):
        assert cli("import", "model.onnx", "-o", folder).code == 0
        assert cli("schedule", folder, "--device", "a100", *how).code == 0
        assert (tmp_path / folder / "2-plan.json").read_text() == plan
        assert "does not come to this plan again" not in cli("explain", folder, "--group", 1).err
    for shape, message in (
        ("batch=4", "batch=4 is none of 8..64"),
        ("batch=65..", "batch cannot be 65.."),
        ("b=1..", "'b'"),
    ):
        ran = cli("schedule", "one", "--device", "a100", "--shape", shape)
        assert ran.code == 2
        assert message in ran.err


def test_without_binding_symbols_stay_to_the_kernels(cli, dynamic, tmp_path):
    assert cli("import", "model.onnx").code == 0
    ran = cli("schedule", "model.tilec", "--device", "a100")
    assert ran.code == 0, ran.err
    assert "batch" in ran.err.splitlines()[-1]  # the traffic is an expression
    assert json.loads((tmp_path / "model.tilec" / "2-plan.json").read_text())["symbols"] == ["batch"]
    assert cli("codegen", "model.tilec").code == 0
    kernels = json.loads((tmp_path / "model.tilec" / "3-kernels.json").read_text())
    assert kernels["arena"]["numbers"][0] == "batch"


@pytest.mark.slow
def test_tiles_of_a_symbolic_plan_are_those_for_the_likely_size(cli, dynamic, tmp_path):
    assert cli("import", "model.onnx").code == 0

    def planned(known: str) -> tuple[object, str]:
        (tmp_path / "recipe.yaml").write_text(f"device: a100\nshapes: {{batch: {known}}}\n")
        ran = cli("schedule", "model.tilec", "--recipe", "recipe.yaml")
        assert ran.code == 0, ran.err
        plan = json.loads((tmp_path / "model.tilec" / "2-plan.json").read_text())
        assert plan["symbols"] == ["batch"]
        explained = cli("explain", "model.tilec", "--recipe", "recipe.yaml", "--group", 1)
        assert "does not come to this plan again" not in explained.out + explained.err
        return [group["variants"][0]["tiles"] for group in plan["groups"]], ran.err

    usual, many = planned("{divisor: 1}"), planned("{likely: [65536]}")
    assert usual[0] != many[0]
    assert "skipped" not in many[1], "another likely size is another plan"
    assert planned("{range: [65536, 262144]}")[0] == many[0], "four times as many are looked at for both"


def test_schedule_refuses_an_unknown_symbol(cli, dynamic):
    assert cli("import", "model.onnx").code == 0
    ran = cli("schedule", "model.tilec", "--device", "a100", "--shape", "bacth=3")
    assert ran.code == 2
    assert "Did you mean 'batch'?" in ran.err


def test_a_device_file_stands_beside_the_plan_and_is_asked_for_where_it_does_not(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    (tmp_path / "mine.yaml").write_text(cli("device", "show", "a100").out.replace("name: a100", "name: mine"))
    assert cli("compile", "model.onnx", "--device", "mine.yaml", "--to", "schedule").code == 0
    assert cli("codegen", "model.tilec").code == 0
    (tmp_path / "model.tilec" / "device.yaml").unlink()
    ran = cli("codegen", "model.tilec")
    assert ran.code == 2
    assert "the file of its device 'mine' is not here" in ran.err
    assert "--device FILE" in ran.err
    assert cli("codegen", "model.tilec", "--device", "mine.yaml").code == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("managed: implicit", "manged: implicit", ["unknown key 'manged'", "Did you mean 'managed'?"]),
        ("capacity: 32GiB", "capacity: 32GB/s", ["32GB/s"]),
        ("capacity: 32GiB", "capacity: -32GiB", ["-32GiB"]),
        ("levels:", "levels: [", ["not valid YAML"]),
    ],
)
def test_bad_device_files_name_line_and_column(cli, listing, tmp_path, old, new, said):
    models.mlp(tmp_path / "model.onnx")
    text = cli("device", "show", "zen5-avx512").out
    assert old in text
    line = text[: text.index(old)].count("\n") + 1
    (tmp_path / "bad.yaml").write_text(text.replace(old, new, 1))
    before = listing()
    ran = cli("compile", "model.onnx", "--device", "bad.yaml")
    assert ran.code == 2
    assert "error: bad.yaml:" in ran.err
    if len(said) > 1 or said[0] in new:
        assert ran.err.startswith(f"error: bad.yaml:{line}:")
    for words in said:
        assert words in ran.err
    assert listing() == before


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("kind: compile\nfusion: none\n", "recipe.yaml:2:1", "unknown key 'fusion'"),
        ("schedule: {fusion: non}\n", "recipe.yaml:1:20", "found 'non'"),
        ("verify: {tolerance: -1.0}\n", "recipe.yaml:1:21", "-1"),
        ("shapes: {batch: many}\n", "recipe.yaml:1:17", "many"),
    ],
)
def test_bad_recipes_name_line_and_column(cli, listing, tmp_path, text, place, said):
    models.mlp(tmp_path / "model.onnx")
    (tmp_path / "recipe.yaml").write_text(text)
    before = listing()
    for verb in (["import"], ["compile", "--device", "a100"]):
        ran = cli(verb[0], "model.onnx", *verb[1:], "--recipe", "recipe.yaml")
        assert ran.code == 2
        assert f"error: {place}: " in ran.err
        assert said in ran.err
    assert listing() == before


def test_print_recipe_shows_the_origin_of_each_value_and_stops(cli, listing, tmp_path, monkeypatch):
    models.mlp(tmp_path / "model.onnx", "batch")
    (tmp_path / "recipe.yaml").write_text("schedule: {budget: 7}\ncodegen: {threads: 3}\n")
    monkeypatch.setenv("TILEC_SCHEDULE_OBJECTIVE", "traffic")
    before = listing()
    ran = cli(
        *("compile", "model.onnx", "--device", "a100", "--recipe", "recipe.yaml", "--threads", 5, "--strict"),
        *("--shape", "batch=2", "--print-recipe"),
    )
    assert ran.code == 0
    for line in (
        'device: "a100"  # --device',
        '  objective: "traffic"  # TILEC_SCHEDULE_OBJECTIVE',
        "  budget: 7  # recipe.yaml:1:20",
        "  threads: 5  # --threads",
        '  processor: "sm_80"  # device a100',
        'fallback: "refuse"  # --strict',
        "    value: 2  # --shape",
        '  reference: "onnxruntime"  # default',
    ):
        assert line in ran.out.splitlines(), line
    assert listing() == before


def test_a_recipe_decides_what_the_stage_does(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    (tmp_path / "recipe.yaml").write_text(
        "device: a100\nschedule: {fusion: none}\nverify: {seeds: [5], tolerance: 0.1}\n"
    )
    ran = cli("compile", "model.onnx", "--recipe", "recipe.yaml")
    assert ran.code == 0, ran.err
    assert "plan: 4 groups (0 stitched, 0 register-fused, 4 single)" in ran.err
    offsets = json.loads((tmp_path / "model.tilec" / "3-kernels.json").read_text())["arena"]["offsets"].values()
    assert set(offsets) > {0}
    assert all(offset % 256 == 0 for offset in offsets), "the alignment of its lowest level"
    report = json.loads((tmp_path / "model.tilec" / "4-report.json").read_text())
    assert report["outputs"]["y"]["tolerance"] == 0.1
    run = json.loads((tmp_path / "model.tilec" / "run.json").read_text())
    assert [draw["seed"] for draw in run["draws"]] == [5]


def test_a_standard_output_artifact_is_alone_there(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("import", "model.onnx", "-o", "-")
    assert json.loads(ran.out)["artifact"]["kind"] == "graph"
    assert "placement: 4 of 4 nodes compiled" in ran.err


def test_what_passes_alter_is_told_on_stderr(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    ran = cli("import", "model.onnx", "--shape", "batch=4", "--print-between-passes", "-o", "-")
    assert json.loads(ran.out)["artifact"]["kind"] == "graph"
    lines = ran.err.splitlines()
    assert lines[0] == "after translate: 4 nodes"
    assert "  + h0[m, n] = sum(k, x[m, k] * w1[k, n])  # f32, m=batch n=32 k=16" in lines
    assert (
        "  - h0[m, n] = sum(k, x[m, k] * w1[k, n])  # f32, m=batch n=32 k=16"
        in lines[lines.index("after bind: 4 nodes") :]
    )
    assert cli("import", "model.onnx", "--shape", "batch=4", "-o", "g.json").code == 0
    (tmp_path / "r.yaml").write_text("schedule: {print_between_passes: true, bounds: false}\n")
    for _ in range(2):  # though the plan is fresh
        ran = cli("schedule", "g.json", "--device", "a100", "--recipe", "r.yaml", "-o", "p.json")
        told = [line for line in ran.err.splitlines() if line.startswith("after ")]
        assert told[0] == "after import: 4 nodes"
        passes = [
            "inline_scalars:",
            "sink_dequantize:",
            "round_activations:",
            "integral:",
            "unflatten:",
            "compose:",
            "fold_movement:",
            "align_iterators:",
            "decode_weights:",
            "store_codes:",
            "choose_layouts:",
            "choose_units:",
            "write_out_sums:",
            "rematerialize:",
            "spread_reductions:",
        ]
        assert [line.split()[1] for line in told[1:16]] == passes
        assert told[1].endswith("unchanged")
        assert "  rule: constants of one element become literals of what reads them" in ran.err.splitlines()
        steps = {line.split()[1].rstrip(":") for line in told[16:]}
        assert steps == {step.name for step in SEARCH} - {"aggregate_rules", "partition_levels", "tune_groups"}
    ran = cli("schedule", "g.json", "--device", "a100", "--no-bounds", "-o", "p.json")
    assert "schedule: unchanged, skipped" in ran.err
    assert "after " not in cli("schedule", "g.json", "--device", "a100", "--no-bounds", "-o", "q.json", "-q").err


def test_what_passes_over_kernels_alter_is_told_on_stderr(cli, tmp_path):
    from tilec.codegen.cpu.pipeline import KERNEL_PASSES

    models.mlp(tmp_path / "model.onnx")
    assert cli("import", "model.onnx", "-o", "b/1-graph.json").code == 0
    assert cli("schedule", "b", "--device", "avx2", "--no-bounds").code == 0
    for _ in range(2):  # though the kernels are fresh
        ran = cli("codegen", "b", "--print-between-passes")
        assert ran.code == 0, ran.err
        (kernel, *_), *_ = steps = [line.split() for line in ran.err.splitlines() if " after " in line]
        assert [step[2][:-1] for step in steps if step[0] == kernel] == [each.name for each in KERNEL_PASSES]
    assert "  + array    x: f32[64] an operand" in ran.err
    assert "codegen: unchanged, skipped" in cli("codegen", "b").err


@pytest.mark.feature("B07")
def test_a_size_of_one_that_is_repeated_is_bound_at_import(cli, tmp_path):
    nodes = [helper.make_node("Add", ["x", "z"], ["y"], name="add")]
    models.save(
        tmp_path / "sum.onnx",
        nodes,
        [models.value("x", "b", 4), models.value("z", "c", 4)],
        [models.value("y", "b", 4)],
    )
    open_sizes = [{"holds": "b == c or b == 1 or c == 1", "origin": "node add (Add)"}]
    assert json.loads(cli("import", "sum.onnx", "-o", "-").out)["constraints"] == open_sizes
    for shape, rows in (("b=3,c=3", 3), ("b=3,c=1", 1)):
        bound = json.loads(cli("import", "sum.onnx", "--shape", shape, "-o", "-").out)
        assert (bound["symbols"], bound["tensors"]["z"]) == ([], f"f32[{rows}, 4]")
        assert "constraints" not in bound
    bound = json.loads(cli("import", "sum.onnx", "--shape", "b=3", "-o", "-").out)
    assert [each["holds"] for each in bound["constraints"]] == ["3 == c or c == 1"]
    repeated = json.loads(cli("import", "sum.onnx", "--shape", "b=3,c=1", "-o", "-").out)
    assert (repeated["tensors"]["z"], repeated["tensors"]["y"]) == ("f32[1, 4]", "f32[3, 4]")
    repeated = json.loads(cli("import", "sum.onnx", "--shape", "b=2..9,c=1", "-o", "-").out)
    assert (repeated["symbols"], repeated["tensors"]["z"], repeated["tensors"]["y"]) == (
        ["b"],
        "f32[1, 4]",
        "f32[b, 4]",
    )
    ran = cli("import", "sum.onnx", "--shape", "b=3,c=2")
    assert ran.code == 2
    assert "b == c or b == 1 or c == 1 does not hold (node add (Add))" in ran.err
