"""`tilec report PLAN... -o report.html`."""

import json
import re

import pytest

from tilec.artifact import digest_object


def data_of(text):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found)


def test_a_compiled_model_becomes_a_page(cli, build):
    ran = cli("report", "model.tilec", "-o", "sub/report.html")
    assert (ran.code, ran.out) == (0, "")
    assert re.fullmatch(r"report: done in .* s\npage: sub/report.html\n", ran.err)
    (plan,) = data_of((build.parent / "sub/report.html").read_text())["plans"]
    body = json.loads((build / "2-plan.json").read_text())
    assert [group["name"] for group in plan["groups"]] == [group["name"] for group in body["groups"]]
    for group, told in zip(body["groups"], plan["groups"], strict=True):
        assert told["time"] == group["cost"]["picoseconds"]
        assert {level: use["read"] for level, use in told["levels"].items()} == group["cost"]["read"]
    for kernel, text in plan["programs"].items():
        assert (build / "programs" / f"{kernel}.txt").read_text() == text
    assert plan["totals"]["ratio"]["known_bytes"] > 0
    assert plan["verdict"]["verdict"] == "pass"
    assert plan["verdict"]["outputs"][0]["errors"]
    assert plan["device"]["known"]
    del body["artifact"]
    assert plan["digests"]["plan"] == digest_object(body)


def test_twice_the_same_on_standard_output(cli, build):
    ran = cli("report", build / "2-plan.json", "-o", "-", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("<!doctype html>")
    assert cli("report", build / "2-plan.json", "-o", "-", "--quiet").out == ran.out


def test_two_plans_side_by_side(cli, build):
    assert cli("schedule", build / "1-graph.json", "--device", "a100", "-o", "other.json").code == 0
    assert cli("report", "model.tilec", "other.json", "-o", "both.html").code == 0
    data = data_of((build.parent / "both.html").read_text())
    assert [plan["label"] for plan in data["plans"]] == ["model.tilec", "other.json"]
    assert data["plans"][1]["verdict"] == {"state": "none"}
    told = json.loads(cli("diff", "model.tilec", "other.json", "--json").out)
    assert not told.pop("bounds")  # the page has found the best known traffic, plans carry what is proved
    assert data["changes"].pop("bounds")
    for group, same in zip(data["changes"]["groups"], told["groups"], strict=True):
        assert (bool(group.pop("bounds")), same.pop("bounds")) == (True, {})
    del data["changes"]["families"]
    assert data["changes"] == told


def test_a_report_of_another_plan_is_stale_and_an_edit_is_told(cli, build):
    path = build / "2-plan.json"
    body = json.loads(path.read_text())
    body["name"] = "renamed"
    path.write_text(json.dumps(body))
    assert cli("report", "model.tilec", "-o", "r.html").code == 0
    (plan,) = data_of((build.parent / "r.html").read_text())["plans"]
    assert plan["verdict"] == {"state": "stale"}
    assert plan["edited"]


def test_a_device_that_is_not_beside_the_plan_is_named(cli, build):
    (build / "device.yaml").rename(build.parent / "mine.yaml")
    assert cli("report", "model.tilec", "-o", "r.html").code == 0
    assert not data_of((build.parent / "r.html").read_text())["plans"][0]["device"]["known"]
    assert cli("report", "model.tilec", "-o", "r.html", "--device", "mine.yaml").code == 0
    assert data_of((build.parent / "r.html").read_text())["plans"][0]["device"]["known"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "r.html"), "PLAN: no plan is named\n  Name 2-plan.json or its folder, or two of them."),
        (("a", "b", "c", "-o", "r.html"), "PLAN: 3 plans are more than two"),
        (("a", "-o", "r.txt"), "r.txt: the page is HTML\n  Name it .html, or - for standard output."),
        (("gone.json", "-o", "r.html"), "gone.json: no such file"),
        (("-", "-", "-o", "r.html"), "both plans cannot come from standard input"),
        (("a", "-o", "r.html", "--bounds"), "-o: a page takes no --bounds"),
        (("a", "-o", "r.html", "--json"), "-o: a page takes no --json"),
        (("a", "-o", "r.html", "--format", "csv"), "-o: a page takes no --format"),
        (("a", "-o", "r.html", "--device", "a10"), "no device is called 'a10'\n  Did you mean 'a100'?"),
        (("x.json",), "x.json: this is a plan, no model\n  Add -o report.html to see plans as a page."),
    ],
)
def test_wrong_use(cli, tmp_path, arguments, said):
    ran = cli("report", *arguments)
    assert (ran.code, ran.out) == (2, "")
    if "--json" in arguments:
        error = json.loads(ran.err)["error"]
        assert f"{error['place']}: {error['message']}" == said
    else:
        assert ran.err.startswith(f"error: {said}")
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_plan_and_a_device_of_no_plan(cli, build, tmp_path):
    ran = cli("report", tmp_path, "-o", "r.html")
    assert (ran.code, "2-plan.json: no such file" in ran.err) == (2, True)
    ran = cli("report", "model.tilec", "-o", "r.html", "--device", "a100")
    assert (ran.code, ran.out) == (2, "")
    assert "--device: no plan was made for 'a100' as it is in this file" in ran.err
    assert cli("report", build / "1-graph.json", "-o", "r.html").code == 2
    assert not (tmp_path / "r.html").exists()


def test_a_plan_that_cannot_be_lowered_gives_no_page(cli, build, tmp_path):
    path = build / "2-plan.json"
    body = json.loads(path.read_text())
    body["groups"][0]["variants"][0]["tiles"] = {"nowhere": {"x": {"i": 3}}}
    path.write_text(json.dumps(body))
    ran = cli("report", "model.tilec", "-o", "r.html")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: y: y names the level nowhere, which the variant does not have")
    assert "Traceback" not in ran.err
    body["groups"][0]["outputs"] = ["nowhere"]
    path.write_text(json.dumps(body))
    ran = cli("report", "model.tilec", "-o", "r.html")
    assert ran.code == 2
    assert ran.err.startswith("error: model.tilec/2-plan.json: illegal plan: ")
    assert not (tmp_path / "r.html").exists()
