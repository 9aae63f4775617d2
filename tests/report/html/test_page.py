"""The page: self-contained, the same twice, and nothing of a plan becomes markup."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from report.plans import base, plan, renamed, tuned

from tilec.ir.graph import Node, Port
from tilec.ir.plan import Refusal
from tilec.report.html import Shown, page
from tilec.report.html.page import embedded
from tilec.report.html.plan_data import plan_data

NASTY = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>&amp;\u2028\"'"


class Parts(HTMLParser):
    """Elements with their attributes, and the text of style, script and title elements."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.inside = [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag
        if tag in ("script", "style", "title"):
            self.texts.append((tag, dict(attributes), ""))

    def handle_data(self, data):
        if self.inside in ("script", "style", "title"):
            tag, attributes, text = self.texts[-1]
            self.texts[-1] = (tag, attributes, text + data)

    def handle_endtag(self, tag):
        self.inside = None

    def text(self, tag, **attributes):
        (found,) = [text for name, having, text in self.texts if name == tag and attributes.items() <= having.items()]
        return found


def nasty():
    first, *rest = base().groups
    nodes = tuple(Node(node.expr, NASTY, (NASTY,)) for node in first.nodes)
    refusals = (Refusal("r->g", NASTY, {NASTY: NASTY}),)
    return plan(replace(first, nodes=nodes), *rest, name=NASTY, inputs=(Port(NASTY, "x"),), refusals=refusals)


def test_nothing_of_a_plan_becomes_markup():
    text = page([Shown(NASTY, nasty(), report={"verdict": NASTY}, digests={NASTY: NASTY})])
    parts = Parts(text)
    plain = Parts(page([Shown("here", base())]))
    assert [tag for tag, _ in parts.tags] == [tag for tag, _ in plain.tags]
    assert parts.text("title").startswith(NASTY)
    data = json.loads(parts.text("script", id="data"))
    assert data["plans"][0]["name"] == NASTY
    assert data["plans"][0]["groups"][0]["nodes"][0]["origin"] == [NASTY]
    assert text.isascii() or not embedded(data).count("\u2028")


def test_the_data_are_those_of_the_plan():
    parts = Parts(page([Shown("here", base())]))
    data = json.loads(parts.text("script", id="data"))
    assert data == json.loads(json.dumps({"plans": [plan_data(Shown("here", base()))], "changes": None}))


def test_the_same_plans_give_the_same_bytes():
    assert page([Shown("a", base()), Shown("b", tuned())]) == page([Shown("a", base()), Shown("b", tuned())])


def test_the_page_asks_nothing_of_any_network():
    text = page([Shown("here", base())])
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\((?!['`#$])|\bfetch\(|XMLHttpRequest|import\(", text)
    for _, attributes in Parts(text).tags:
        assert "src" not in attributes
        assert str(attributes.get("href", "#")).startswith("#")
    assert not re.search(r"/(home|work|tmp|root)/", text)


def test_only_the_scripts_and_styles_of_the_page_run():
    parts = Parts(page([Shown("here", base())]))
    (policy,) = [a["content"] for tag, a in parts.tags if a.get("http-equiv") == "Content-Security-Policy"]
    for directive, tag in (("script-src", "script"), ("style-src", "style")):
        text = [each for name, attributes, each in parts.texts if name == tag and "id" not in attributes]
        digest = b64encode(sha256(text[0].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_scripts_put_text_into_the_page_as_text():
    script = Parts(page([Shown("here", base())])).texts[-1][2]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_every_asset_is_part_of_the_page():
    text = page([Shown("here", base())])
    names = [each.name for each in (files("tilec.report.html") / "assets").iterdir()]
    assert len(names) > 20
    for each in (files("tilec.report.html") / "assets").iterdir():
        if each.name != "page.html":
            assert each.read_text(encoding="utf-8") in text, each.name
    assert "{{" not in text.replace("${{", "")
    assert len(text) < 150_000


def test_two_plans_are_compared():
    parts = Parts(page([Shown("a", base()), Shown("b", tuned())]))
    data = json.loads(parts.text("script", id="data"))
    assert data["changes"]["changed"]
    assert data["changes"]["families"] == [[[0], [0]], [[1, 2], [1]]]
    assert [(g["before"], g["after"]) for g in data["changes"]["groups"]] == [(["r"], ["r"]), (["g", "y"], ["y"])]
    assert data["changes"]["totals"]["groups"] == {"before": 3, "after": 2}
    same = Parts(page([Shown("a", base()), Shown("b", renamed(base()))]))
    assert not json.loads(same.text("script", id="data"))["changes"]["changed"]
    assert parts.text("title") == "net on toy - tilec report"


def test_an_empty_plan_has_a_page():
    assert "tilec report" in page([Shown("here", plan(inputs=(), outputs=(), refusals=()))])


@pytest.mark.parametrize("data", [{"a": "<&>\u2028"}, [None, True, 1.5, -3]])
def test_embedded_json_reads_back(data):
    assert json.loads(embedded(data)) == data
    assert not set("<>&") & set(embedded(data))
