"""Shell completion: devices, recipes, sizes, and the groups, edges and nodes of a plan; nothing heavy is imported."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

YAML = (".yaml", ".yml")


def devices(incomplete: str) -> list[str]:
    """Names of packaged devices, host, and device files."""
    return [*_beginning(["host", *_packaged("devices")], incomplete), *_files(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Names of packaged recipes, and recipe files."""
    return [*_beginning(_packaged("recipes"), incomplete), *_files(incomplete)]


def zoo_models(incomplete: str) -> list[str]:
    """Names of the models of the zoo."""
    from tilec import zoo

    return _beginning(zoo.names(), incomplete)


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the groups of the plan that is named on the command line."""
    return _beginning([str(group["name"]) for group in _groups(ctx)], incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the nodes of the plan that is named on the command line."""
    return _beginning(_nodes(_groups(ctx)), incomplete)


def edges(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plan's edges, connected or not."""
    plan = _plan(ctx)
    connected = [edge for group in plan.get("groups", ()) for edge in group.get("connect", {})]
    return _beginning([*connected, *(refusal["edge"] for refusal in plan.get("refusals", ()))], incomplete)


def sizes(ctx: typer.Context, incomplete: str) -> list[str]:
    """The symbols of the graph that is named on the command line, or that was made from the model named there; the last
    one of a list is completed."""
    given, comma, _ = incomplete.rpartition(",")
    return _beginning([f"{given}{comma}{symbol}=" for symbol in _symbols(ctx)], incomplete)


def _symbols(ctx: typer.Context) -> list[str]:
    from tilec.pipeline.job import FILES

    named = (ctx.params.get(key) for key in ("model", "graph", "source", "subject"))
    path = Path(str(next(filter(None, named), None) or next(iter(ctx.args), "")))
    folder = path if path.is_dir() else Path(f"{path.stem}.tilec")
    with suppress(OSError, ValueError):
        body = json.loads((path if path.suffix == ".json" else folder / FILES["graph"]).read_text(encoding="utf-8"))
        return [str(symbol) for symbol in body.get("symbols", ())] if isinstance(body, dict) else []
    return []


def _packaged(folder: str) -> list[str]:
    """Names of the files that come with tilec."""
    from tilec.spec.resolve import packaged

    return sorted(packaged(folder))


def _files(incomplete: str) -> list[str]:
    """YAML files and folders that complete a path."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    with suppress(OSError):
        paths = sorted(each for each in folder.iterdir() if each.suffix in YAML or each.is_dir())
        return _beginning([f"{each}/" if each.is_dir() else str(each) for each in paths], incomplete)
    return []


def _plan(ctx: typer.Context) -> dict[str, Any]:
    """The plan of the first argument; empty where it cannot be read.

    While an option has no value yet, the parser cannot tell arguments apart, and the first one is taken.
    """
    from tilec.pipeline.job import FILES

    path = Path(str(ctx.params.get("subject") or next(iter(ctx.args), "")))
    with suppress(OSError, ValueError):
        body = json.loads((path / FILES["plan"] if path.is_dir() else path).read_text(encoding="utf-8"))
        return body if isinstance(body, dict) else {}
    return {}


def _groups(ctx: typer.Context) -> list[dict[str, Any]]:
    return [group for group in _plan(ctx).get("groups", ()) if "name" in group]


def _nodes(groups: Iterable[dict[str, Any]]) -> list[str]:
    return [node["expr"]["text"].partition("[")[0] for group in groups for node in group.get("nodes", ())]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that start with the typed text, each once."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
