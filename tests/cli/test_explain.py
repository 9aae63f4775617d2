"""`tilec explain`: pages of codes as text and as JSON."""

import json

import pytest

from tilec.report.codes import all_pages


def test_a_page(cli, golden):
    ran = cli("explain", "slower")
    assert (ran.code, ran.err) == (0, "")
    golden("explain-slower.txt", ran.out)


def test_a_code_of_two_kinds(cli, golden):
    golden("explain-capacity.txt", cli("explain", "capacity").out)


def test_all_codes_are_listed(cli, golden):
    ran = cli("explain")
    assert ran.code == 0
    golden("explain.txt", ran.out)


@pytest.mark.parametrize("code", ["slower", "unused", "data-dependent-shape", "no-entry", "PlanError", "130"])
def test_a_page_as_json(cli, code):
    (page,) = json.loads(cli("explain", code, "--json").out)["pages"]
    assert sorted(page) == ["code", "example", "kind", "meaning", "numbers", "remedy"]
    assert page["code"] == code


def test_the_list_as_json(cli):
    told = json.loads(cli("explain", "--json").out)["codes"]
    assert len(told) == len(all_pages())
    assert told[0] == {"code": "fusion-off", "kind": "edge", "meaning": "the recipe asks for one group per node"}


def test_a_message_leads_to_its_code(cli):
    assert cli("explain", "its output's shape depends on the data").out.startswith("data-dependent-shape: ")


def test_an_unknown_code(cli):
    ran = cli("explain", "capicity")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: no code is called 'capicity'\n  Did you mean 'capacity'?\n"
