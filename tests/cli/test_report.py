"""`tilec report`: tables of plans, forms, flags over recipes, errors."""

import csv
import io
import json

import pytest

from cli import models

RECIPE = "kind: sweep\nmodels: [mlp.onnx]\ndevices: [a100]\nfusion: [none, register]\nshapes: {batch: [2, 8]}\n"


@pytest.fixture
def recipe(tmp_path):
    """A recipe in a folder of its own, beside the model that it names."""
    models.mlp(tmp_path / "sub" / "mlp.onnx", batch="batch")
    (tmp_path / "sub" / "s.yaml").write_text(RECIPE)
    return "sub/s.yaml"


def test_a_table_with_a_row_for_every_combination(cli, recipe, listing):
    before = listing()
    ran = cli("report", "--recipe", recipe)
    assert ran.code == 0
    head, *lines = ran.out.splitlines()
    assert head.split()[:5] == ["model", "sizes", "device", "fusion", "groups"]
    assert [line.split()[:5] for line in lines] == [
        ["mlp.onnx", f"batch={batch}", "a100", *rest]
        for number, batch in enumerate((2, 8))
        for rest in (["none", "4"], ["register", lines[2 * number + 1].split()[4]])
    ]
    assert ran.err.startswith("report: done in ")
    assert listing() == before


def test_the_same_as_csv_and_json(cli, recipe, tmp_path):
    (tmp_path / recipe).write_text(RECIPE.replace("[2, 8]", "[8]"))
    text = cli("report", "--recipe", recipe, "--format", "csv").out
    told = json.loads(cli("report", "--recipe", recipe, "--json", "--quiet").out)
    assert told == json.loads(cli("report", "--recipe", recipe, "--format", "json").out)
    for row, other in zip(csv.DictReader(io.StringIO(text)), told["rows"], strict=True):
        assert (row["fusion"], int(row["batch"])) == (other["fusion"], other["sizes"]["batch"])
        assert int(row["intermediate_bytes"]) == other["plan"]["intermediate_bytes"]
        assert int(row["transactions"]) == other["plan"]["levels"]["dram"]["transactions"] > 0


def test_flags_replace_keys_of_the_recipe(cli, recipe, tmp_path):
    models.mlp(tmp_path / "here.onnx")
    ran = cli("report", "here.onnx", "--recipe", recipe, "--shape", "batch=3")
    assert (ran.code, ran.err) == (2, "error: --shape: no model takes a size 'batch'\n  Sizes are all fixed.\n")
    arguments = ("--shape", "batch=3,batch=4", "--fusion", "none", "--device", "avx2", "--json")
    told = json.loads(cli("report", "--recipe", recipe, *arguments).out)
    assert [(row["sizes"], row["device"], row["fusion"]) for row in told["rows"]] == [
        ({"batch": 3}, "avx2", "none"),
        ({"batch": 4}, "avx2", "none"),
    ]


def test_rows_without_a_plan_fail_after_the_others_are_told(cli):
    arguments = ("report", "nerf-mlp", "--device", "a100", "--fusion", "none", "--shape", "seq=0,seq=8")
    ran = cli(*arguments)
    assert ran.code == 1
    assert [line.split()[1] for line in ran.out.splitlines()] == ["sizes", "seq=0", "seq=8"]
    assert ran.err.endswith("error: 1 of 2 combinations have no plan\n  nerf-mlp on a100: seq 0 is less than 1\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to plan\n  Name models of the zoo or ONNX files, or a recipe of kind sweep."),
        (("nerf",), "MODEL: there is no model 'nerf'\n  Did you mean 'nerf-mlp' of the zoo?"),
        (("nerf-mlp", "--device", "a10"), "--device: no device is called 'a10'\n  Did you mean 'a100'?"),
        (("nerf-mlp", "--fusion", "nnone"), "--fusion: no way to fuse is called 'nnone'; did you mean 'none'?"),
        (("nerf-mlp", "--shape", "batch"), "--shape 'batch' does not bind a size"),
        (("--recipe", "default"), "recipes/default.yaml:3:7: expected kind 'sweep', found 'compile'"),
        (("--recipe", "sensitivty"), "no recipe is called 'sensitivty'\n  Did you mean 'sensitivity'?"),
    ],
)
def test_wrong_use(cli, arguments, said):
    ran = cli("report", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")


STUDY = "kind: sweep\nconvention: 2-byte words\nworkloads: [bounds/ffn]\ncapacities: [10MB, 300MB]\ndevices: [a100]\n"


@pytest.mark.feature("O28", "O32")
def test_a_design_study_in_every_form(cli, tmp_path):
    (tmp_path / "s.yaml").write_text(STUDY)
    ran = cli("report", "--recipe", "s.yaml")
    assert ran.code == 0
    head, *lines = ran.out.splitlines()
    assert head.split()[:5] == ["workload", "mapspace", "machine", "level", "buffer"]
    assert "300MB" in lines[1]
    assert "convention: 2-byte words" in lines
    assert ran.err.startswith("report: done in ")
    told = json.loads(cli("report", "--recipe", "s.yaml", "--json", "--quiet").out)
    rows = list(csv.DictReader(io.StringIO(cli("report", "--recipe", "s.yaml", "--format", "csv").out)))
    assert [int(row["traffic_bytes"]) for row in rows] == [row["traffic_bytes"] for row in told["rows"]]
    assert rows[3]["traffic_bytes"] == str(768 << 20)


def test_a_design_study_is_drawn_and_takes_other_devices(cli, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "s.yaml").write_text(STUDY)
    ran = cli("report", "--recipe", "s.yaml", "--device", "h100", "--plot", "s.svg", "--json")
    assert {row["machine"] for row in json.loads(ran.out)["rows"]} == {"h100"}
    assert "plot: s.svg" in ran.err
    assert (tmp_path / "s.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("bert-base", "--recipe", "s.yaml"),
            "MODEL: a design study takes no MODEL\n  Its workloads are in the recipe.",
        ),
        (("--recipe", "s.yaml", "--fusion", "none"), "--fusion: a design study takes no --fusion"),
        (("--recipe", "s.yaml", "--plot", "s.pdf"), "s.pdf: cannot draw a .pdf\n  Name it .png or .svg."),
        (("nerf-mlp", "--plot", "s.svg"), "--plot: only a design study is drawn"),
    ],
)
def test_flags_that_say_nothing_about_a_study(cli, tmp_path, arguments, said):
    (tmp_path / "s.yaml").write_text(STUDY)
    ran = cli("report", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")


def test_bounds_says_where_a_study_runs(cli):
    ran = cli("bounds", "studies/gpt3-area")
    assert ran.code == 2
    assert "Run it with `tilec report --recipe studies/gpt3-area`." in ran.err
