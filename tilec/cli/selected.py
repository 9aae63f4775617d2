"""The facts of single groups and nodes for `tilec inspect --select`, as JSON."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import Artifact
from tilec.cli.facts import read_artifact_of_any_kind
from tilec.cli.model_facts import Facts
from tilec.errors import ArtifactError, UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.ir.graph import Node
    from tilec.ir.plan import Group, Plan, Variant

_ROWS = tuple[Sequence[str], Callable[[], Facts]]
"""The names of an object, and a function that returns its facts."""


def selected(path: Path, patterns: Sequence[str], sizes: Mapping[str, int] | None = None) -> dict[str, list[Facts]]:
    """The groups and nodes whose names match, by kind of file; those of a plan with symbols at these `sizes` of them.

    Raises UsageError when a pattern matches nothing, and the errors of reading the files.
    """
    from tilec.pipeline import FILES

    files = [path / name for name in FILES.values() if (path / name).is_file()] if path.is_dir() else [path]
    if not files:
        raise UsageError("there is no artifact in this folder", str(path), "`tilec compile` writes some.")
    by_kind: dict[str, list[Facts]] = {}
    known: list[str] = []
    hit: set[str] = set()
    for file in files:
        kind, rows = _rows_of(file, sizes)
        for names, tell in rows:
            matching = {pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)}
            known += names
            hit |= matching
            if matching:
                by_kind.setdefault(kind, []).append(tell())
    for pattern in patterns:
        if pattern not in hit:
            near = did_you_mean(pattern, known)
            hint = (
                f"Did you mean {near!r}?" if near else "Names may have * and ?; groups, nodes and operators have names."
            )
            raise UsageError(f"nothing is called {pattern!r}", str(path), hint)
    return by_kind


def _rows_of(path: Path, sizes: Mapping[str, int] | None) -> tuple[str, list[_ROWS]]:
    if path.suffix != ".json":
        return "model", list(_model(path))
    artifact = read_artifact_of_any_kind(path)
    try:
        if artifact.kind == "plan":
            return "plan", list(_plan(artifact, path, sizes))
        return artifact.kind, list(_ROWS_OF[artifact.kind](artifact, path))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"this is no {artifact.kind}: {error}", str(path), "Undo the edit, or run the stage that writes it again."
        ) from error


def _model(path: Path) -> Iterator[_ROWS]:
    from tilec.importer.loader import load_structure

    for i, node in enumerate(load_structure(path).proto.graph.node):
        name = node.name or f"node {i}"
        facts = {"name": name, "operator": node.op_type, "inputs": list(node.input), "outputs": list(node.output)}
        facts["attributes"] = [attribute.name for attribute in node.attribute]
        yield (name, node.op_type, *node.output), partial(dict, facts)


def _graph(artifact: Artifact, path: Path) -> Iterator[_ROWS]:
    from tilec.ir.codec import graph_from_json

    graph = graph_from_json(artifact.body, str(path))
    for node in graph.nodes:
        yield (node.name, node.op, *node.origin), partial(_node, node, type=graph.tensors[node.name].ttype)


def _node(node: "Node", **more: str) -> Facts:
    from tilec.ir.text import tensor_text, text_of

    return {
        "name": node.name,
        **more,
        "operator": node.op,
        "expression": tensor_text(node.expr),
        "extents": {name: text_of(extent) for name, extent in node.expr.domain.items()},
        "from": list(node.origin),
    }


def _plan(artifact: Artifact, path: Path, sizes: Mapping[str, int] | None = None) -> Iterator[_ROWS]:
    from tilec.artifact import encode
    from tilec.cli.plan_origin import plan_as_it_stands, plan_there
    from tilec.pipeline import StageInput

    source = StageInput(path, artifact)
    plan = plan_there(source, plan_as_it_stands(source).plan, sizes)
    for group, stored in zip(plan.groups, artifact.body["groups"], strict=True):
        row = {**stored, "cost": encode(group.cost)}
        if sizes:
            row |= {"variants": [encode(each) for each in group.variants], "bounds": encode(group.bounds)}
        names = [group.name, *(name for node in group.nodes for name in (node.name, node.op, *node.origin))]
        yield names, partial(_group, group, plan, row)
    for node in plan.prepared:
        yield (node.name, node.op, *node.origin), partial(_node, node, prepared="once, at code generation")


def _group(group: "Group", plan: "Plan", row: Mapping[str, Any]) -> Facts:
    """The decisions about a group as they stand in the plan, its costs, and refusals of its edges."""
    from tilec.ir.text import tensor_text

    produced = {node.name for node in group.nodes}
    cost = row["cost"]
    costs = {f"{name}_bytes": cost[name] for name in ("read", "written", "footprint")}
    costs["transactions"] = cost.get("transactions", {})
    for name in ("known", "parallel"):
        costs[f"{name}_bytes"] = {level: each.get(name) for level, each in row.get("bounds", {}).items()}
    return {
        "name": group.name,
        "operators": [node.op for node in group.nodes],
        "expressions": {node.name: tensor_text(node.expr) for node in group.nodes},
        "from": list(dict.fromkeys(name for node in group.nodes for name in node.origin)),
        "outputs": list(group.outputs),
        "connect": dict(row["connect"]),
        **{
            _variant(i, row): dict(decision_lines(type(group.variants[i]), each))
            for i, each in enumerate(row["variants"])
        },
        "per_level": {
            level.name: {name: table[level.name] for name, table in costs.items() if table.get(level.name)}
            for level in plan.levels
        },
        "flops": cost["flops"],
        "predicted_picoseconds": cost.get("picoseconds"),
        "not_fused": {r.edge: r.text for r in plan.refusals if produced & set(r.edge.split("->"))},
    }


def _variant(number: int, row: Mapping[str, Any]) -> str:
    """The title of a variant: its guard where there are several."""
    return "decisions" if len(row["variants"]) == 1 else f"if {row['variants'][number]['guard']}"


def decision_lines(kind: "type[Variant]", variant: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The decisions of a variant of a class, read from its JSON, each on a line: `tiles l2 y` -> `j=32 k=32`."""
    from tilec.ir.decision_forms import decisions_of
    from tilec.ir.decisions import depth
    from tilec.report.formatting import fact_text

    depths = {decision.name: depth(decision) for decision in decisions_of(kind)}
    for name, value in variant.items():
        if name not in ("guard", "levels"):
            yield from (
                (" ".join((name, *keys)), fact_text(each)) for keys, each in _within(value, depths.get(name, 0))
            )


def _within(table: Any, tables: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Keys and value of everything in that many tables inside each other."""
    if not tables:
        yield (), table
        return
    for key, inner in table.items():
        yield from (((key, *keys), value) for keys, value in _within(inner, tables - 1))


def _kernels(artifact: Artifact, _path: Path) -> Iterator[_ROWS]:
    """Steps of the compiled model, with the files of their tile programs."""
    files = {program["kernel"]: str(program["file"]) for program in artifact.body["programs"].values()}
    for step in artifact.body["steps"]:
        program = str(Path(files[step["kernel"]]).with_suffix(".txt").as_posix())
        facts = {"name": step["group"], "kernel": step["kernel"], "tensors": list(step["tensors"]), "program": program}
        yield (step["group"], step["kernel"]), partial(dict, facts)


def _report(artifact: Artifact, path: Path) -> Iterator[_ROWS]:
    """The verification record of a group, if it was compared on its own."""
    from tilec.pipeline import read_run

    if "per_group" in artifact.body:
        for name, check in read_run(path.parent).get("groups", {}).items():
            yield (name, check["tensor"]), partial(dict, {"name": name, **check})


_ROWS_OF: Mapping[str, Callable[[Artifact, Path], Iterable[_ROWS]]] = {
    "graph": _graph,
    "kernels": _kernels,
    "report": _report,
}
