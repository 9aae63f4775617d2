"""A sample of odd values for the options of the command line: each call ends with its result or an explained error."""

import json

import pytest

from cli import forked, odd_places
from cli.odd_values import calls, right, tried
from cli.odd_worlds import World, world
from tilec.report.formatting import time_text

QUICK = ("diff", "inspect", "lint", "bounds", "schema", "device show", "zoo", "run", "import", "schedule")
SAMPLE = ("", "-1", "9" * 25, "model.onnx/x", "batch=3")


@pytest.fixture(scope="module", params=["open"])
def place(request, tmp_path_factory) -> World:
    forked.warm()
    return world(request.param, tmp_path_factory.mktemp("odd") / request.param)


def test_odd_values_of_options(place):
    found = [each for each in calls(SAMPLE, place.kind) if " ".join(each).startswith(QUICK) and "--profile" not in each]
    assert len(found) > 100
    wrong = {" ".join(arguments): said for arguments in found[::17] if (said := tried(arguments, place))}
    assert not wrong


@pytest.mark.parametrize("name", ["full", "closed", "homeless", "plain", "named", "again", "blocked", "interrupted"])
def test_odd_surroundings(place, name):
    for verb in ("import", "report", "inspect"):
        assert not list(odd_places.PLACES[name](right(verb, place.kind), place)), verb


@pytest.mark.parametrize("words", [("import", ""), ("import", "m.onnx", "-o", ""), ("run", "--recipe=", "m.tilec")])
def test_an_empty_argument_is_not_this_folder(cli, words):
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0].endswith("empty")
    assert ran.err.splitlines()[1].startswith("  Is it a variable that is not set?")


def test_what_is_compiled_already_takes_no_device_or_recipe(cli, build):
    for option in ("--device", "--recipe"):
        ran = cli("run", build, option, "nosuch")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: {option}: this model is compiled already")


def test_a_quiet_diff_is_one_line(cli, build):
    loud, quiet = cli("diff", build, build), cli("diff", "-q", build, build)
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out.splitlines() == loud.out.splitlines()[:1]


def test_a_device_in_brackets_is_linted(cli):
    ran = cli("lint", "a100[levels.smem.capacity=64KiB]")
    assert (ran.code, ran.err) == (0, "lint: 1 file: no findings\n")


def test_an_einsum_has_a_place_in_a_study(cli, tmp_path):
    product = '{workload: "C[m,n] = sum(k, A[m,k]*B[k,n])", shapes: {m: 8, n: 8, k: 8}}'
    (tmp_path / "s.yaml").write_text(f"kind: sweep\nconvention: f32\nworkloads: [{product}]\ndevices: [a100]\n")
    ran = cli("report", "--recipe", "s.yaml")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[1].split()[:3] == ["C", "oro+", "a100"]


def test_an_explanation_begins_with_the_predicted_time_of_the_plan(cli, build):
    told = json.loads(cli("inspect", build, "--json").out)
    predicted = time_text(told["plan"]["predicted_picoseconds"])
    assert f", predicted {predicted}" in cli("explain", build).out.splitlines()[0]
    assert max(map(len, cli("explain", build, "--group", 1).out.splitlines())) <= 100
    assert "plan: 1 group (" in cli("schedule", build / "1-graph.json", "--device", "avx2", "-o", "p.json").err
