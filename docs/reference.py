"""Tables and outputs of the manual that are generated from the code: `python -m docs.reference` writes them into its
pages.

A page has a region between `<!-- generated: NAME -->` and `<!-- end -->` for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from docs.sessions import diff_session
from tests.ledger import load
from tilec.artifact import write_text
from tilec.ir.plan import Variant
from tilec.scheduler.pipeline import GRAPH_PASSES, SEARCH
from tilec.spec.schema import schema

DOCS = Path(__file__).parent

_REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_PLAIN = {"boolean": "true or false", "integer": "integer", "number": "number", "string": "text"}

Schema = Mapping[str, Any]


def device_tables() -> str:
    """All keys of device files: a table of the file, then one of every object in it."""
    described = schema("device")
    return "\n".join([*_object("DeviceSpec", described), *_objects(described["$defs"])])


def recipe_tables() -> str:
    """All keys of recipes: tables of the kinds in the order of the schema, each followed by its objects."""
    described = schema("recipe")
    names = [_name(each["$ref"]) for each in described["anyOf"]]
    definitions = described["$defs"]
    kinds = {name: definitions[name] for name in names}
    return "\n".join(_objects({**kinds, **definitions}))


def pass_table() -> str:
    """The passes over the graph, in the order in which they run."""
    rows = [[f"`{each.name}`", each.rule, _options(each), each.without] for each in GRAPH_PASSES]
    return _table(["pass", "rule", "options", "plans without it"], rows)


def target_table() -> str:
    """The targets of the Makefile, as `make help` lists them."""
    found = re.findall(r"^([a-z-]+):.*## (.*)$", (DOCS.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return _table(["command", "what it does"], [[f"`make {name}`", text] for name, text in found])


def search_table() -> str:
    """The steps of the search, in the order in which they run, with their options."""
    rows = [[f"`{step.name}`", step.rule, _options(step)] for step in SEARCH]
    return _table(["step", "rule", "options"], rows)


def _options(step: Any) -> str:
    """The thresholds of a pass or step."""
    values = {each.name: getattr(step, each.name) for each in fields(step)}
    return " ".join(f"`{name}={value:g}`" for name, value in values.items() if isinstance(value, int | float))


def decision_table() -> str:
    """The decisions of a variant, by their names in the plan and in `tilec diff`."""
    decided = [each for each in fields(Variant) if each.metadata]
    descriptions = dict(_described(Variant.__doc__ or ""))
    return _table(["key", "decides"], [[f"`{each.name}`", descriptions[each.name]] for each in decided])


def feature_table() -> str:
    """The catalogue of features with their status."""
    rows = [[name, row.title, f"{row.status}: {row.why}" if row.why else row.status] for name, row in load().items()]
    return _table(["id", "feature", "status"], rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "device": device_tables,
    "recipe": recipe_tables,
    "passes": pass_table,
    "targets": target_table,
    "search": search_table,
    "decisions": decision_table,
    "features": feature_table,
    "diff": diff_session,
}


def refreshed(text: str) -> str:
    """The text of a page with its generated tables as the code has them now."""
    return _REGION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[3]}", text)


def _objects(definitions: Mapping[str, Schema]) -> Iterator[str]:
    for name, described in definitions.items():
        yield from _object(name, described)


def _object(name: str, described: Schema) -> list[str]:
    """A heading, the description and the keys of an object."""
    required = described.get("required", ())
    rows = [
        [f"`{key}`", _kind(value), _default(value, key in required), str(value["description"])]
        for key, value in described["properties"].items()
    ]
    return [f"### {name}", "", described["description"], "", _table(["key", "value", "default", "meaning"], rows), ""]


def _kind(value: Schema) -> str:
    """The type of a key's value in words; an object is a link to its table."""
    if "$ref" in value:
        name = _name(value["$ref"])
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "anyOf" in value:
        return " or ".join(_kind(each) for each in value["anyOf"] if each.get("type") != "null")
    match value.get("type"):
        case "array" if "prefixItems" in value:
            return "pair of " + _kind(value["prefixItems"][0])
        case "array":
            return "list of " + _kind(value["items"])
        case "object":
            return "map to " + _kind(value["additionalProperties"])
        case "string" if "examples" in value:
            return f"quantity, such as `{value['examples'][0]}`"
        case other:
            return _PLAIN[str(other)]


def _default(value: Schema, required: bool) -> str:
    if required:
        return "required"
    default = value.get("default")
    shown = {True: "true", False: "false"}.get(default, default) if isinstance(default, bool) else default
    return "" if default in (None, "", [], {}) or "$ref" in value else f"`{shown}`"


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _described(text: str) -> Iterator[tuple[str, str]]:
    """(field, description) of the list in a docstring, whose entries are indented by four and continued by more."""
    for match in re.finditer(r"^    (\w+) +(\S.*(?:\n {6,}\S.*)*)", text, re.MULTILINE):
        yield match[1], " ".join(match[2].split())


def _table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def main() -> None:
    """Refresh every page."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if refreshed(text) != text:
            write_text(page, refreshed(text))


if __name__ == "__main__":
    main()
