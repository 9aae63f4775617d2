"""The facts of a model or of a stage's artifact for `tilec inspect`, as JSON; nothing is executed or compiled."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import WRITERS, Artifact, parse_artifact
from tilec.cli.model_facts import Facts, model_facts, size_of
from tilec.cli.summary import placement, plan_summary, verified_line
from tilec.errors import ArtifactError, UsageError, unreadable

if TYPE_CHECKING:
    from tilec.ir.graph import Graph, Port
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec

_SHORT = 12
"""Digits of a digest in the output."""


def facts_of(path: Path, sizes: Mapping[str, int] | None = None, scenario: str | None = None) -> dict[str, Facts]:
    """The facts of a file, or of every artifact in a folder, by kind; those of a plan with symbols at these `sizes` of
    them, and of a `scenario` at several lengths. Raises UsageError, ConfigError and ArtifactError."""
    from tilec.pipeline import FILES, read_run

    if path.is_dir():
        there = [path / name for name in FILES.values() if (path / name).is_file()]
        if not there:
            raise UsageError("there is no artifact in this folder", str(path), "`tilec compile` writes some.")
        by_kind = {kind: facts for each in there for kind, facts in facts_of(each, sizes, scenario).items()}
        ran = read_run(path)
        return {**by_kind, "run": _run(ran)} if ran else by_kind
    if path.suffix == ".json" and _is_record(path):
        return {"tuning": _tuning(path)}
    if path.suffix == ".json":
        artifact = read_artifact_of_any_kind(path)
        about: Facts = {"file": path.name, "written_by": f"tilec {WRITERS[artifact.kind]}", "edited": artifact.edited}
        about["made_from"] = {role: digest[:_SHORT] for role, digest in artifact.inputs.items()}
        try:
            of_plan = artifact.kind == "plan"
            facts = _plan(artifact, path, sizes, scenario) if of_plan else _TELL[artifact.kind](artifact, path)
            return {artifact.kind: {**about, **facts}}
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            again = f"Run `tilec {WRITERS[artifact.kind]}` again."
            raise ArtifactError(f"this is no {artifact.kind}: {error}", str(path), again) from error
    return {"model": model_facts(path)}


def _is_record(path: Path) -> bool:
    """Whether a file is a tuning record, which is none of the artifacts of stages."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, Mapping) and document.get("kind") == "tuning"


def _tuning(path: Path) -> Facts:
    """How well the cost model knew the candidates that a tuning record holds."""
    from tilec.analysis.tuning_quality import model_quality, quality_totals
    from tilec.pipeline.record_file import read_record

    def number(value: float) -> float | None:
        return None if value != value else round(value, 3)

    groups = model_quality(read_record(path))
    totals = {name: number(value) for name, value in quality_totals(groups).items()}
    return {
        "file": path.name,
        **totals,
        "per_group": [
            {
                "group": each.group,
                "candidates": each.candidates,
                "correlation": number(each.correlation),
                "loss": number(each.loss),
                "predicted_over_measured": number(each.ratio),
                "picoseconds": round(each.seconds * 1e12),
            }
            for each in groups
        ],
    }


def read_artifact_of_any_kind(path: Path) -> Artifact:
    """The artifact in a file, of any kind. Raises UsageError and ArtifactError."""
    try:
        text = path.read_text(encoding="utf-8")
        kind = json.loads(text)["artifact"]["kind"]
    except OSError as error:
        raise unreadable(error, str(path)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(
            "not an artifact of tilec", str(path), "It reads models and what the stages write."
        ) from error
    return parse_artifact(text, kind if isinstance(kind, str) and kind in WRITERS else "graph", str(path))


def _graph(artifact: Artifact, path: Path) -> Facts:
    from tilec.ir.codec import graph_from_json

    graph = graph_from_json(artifact.body, str(path))
    operators = Counter(node.op or "(none)" for node in graph.nodes)
    return {
        "name": graph.name,
        "inputs": [_port(graph, port) for port in graph.inputs],
        "outputs": [_port(graph, port) for port in graph.outputs],
        "symbols": list(graph.symbols),
        **({"states": _states(graph)} if any(call.updates for call in graph.calls) else {}),
        **({"scenarios": _scenarios(graph)} if graph.scenarios else {}),
        "tensor_expressions": len(graph.nodes),
        "operators": dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        "constants": len(graph.constants),
        "files": {name: digest[:_SHORT] for name, digest in graph.files.items()},
        **_placed(artifact.body),
    }


def _states(graph: "Graph | Plan") -> Facts:
    """Outputs that are states, with the elements of the input that rows become."""
    from tilec.ir.text import text_of

    return {
        present: f"{each.state}[{', '.join(map(text_of, each.place))}] = {each.rows}"
        for call in graph.calls
        for each, present in call.updated
    }


def _scenarios(graph: "Graph") -> list[Facts]:
    """Sizes that occur together, those that decisions are made for, and who says so."""
    from tilec.ir.scenarios import scenario_text
    from tilec.ir.sizes import sizes_text

    return [
        {"scenario": name, "relations": scenario_text(each), "at": list(map(sizes_text, each.at)), "from": each.origin}
        for name, each in graph.scenarios.items()
    ]


def _port(graph: "Graph", port: "Port") -> Facts:
    """An input or output; one that only onnxruntime reads has ONNX's type."""
    from tilec.ir.text import text_of

    tensor = graph.tensors.get(port.tensor)
    if tensor is not None:
        return {"name": port.name, "type": tensor.ttype, "shape": [text_of(extent) for extent in tensor.shape]}
    opaque = graph.opaque[port.tensor]
    return {"name": port.name, "type": opaque.type, "shape": list(opaque.shape) if opaque.shape is not None else None}


def _plan(artifact: Artifact, path: Path, sizes: Mapping[str, int] | None = None, scenario: str | None = None) -> Facts:
    from tilec.analysis.statistics import statistics, statistics_to_json
    from tilec.cli.options import known_device
    from tilec.cli.plan_origin import plan_as_it_stands, plan_there
    from tilec.pipeline import StageInput

    source = StageInput(path, artifact)
    read = plan_as_it_stands(source)
    whole, plan = read.plan, plan_there(source, read.plan, sizes)
    facts = plan_summary(plan)
    numbers = statistics_to_json(statistics(plan))
    refused = Counter(refusal.code for refusal in plan.refusals)
    return {
        "name": plan.name,
        "device": plan.device,
        "levels": [level.name for level in plan.levels],
        "symbols": list(whole.symbols),
        **(_sizes(whole, sizes) if whole.symbols else {}),
        **{name: facts[name] for name in ("groups", "stitched", "register_fused", "single")},
        **{name: value for name, value in numbers.items() if name not in ("groups", "levels")},
        "per_level": numbers["levels"],
        **({"states": _states(plan)} if any(call.updates for call in plan.calls) else {}),
        **_in_scenarios(whole, known_device(source), scenario),
        **({"stale_costs": list(read.stale)} if read.stale else {}),
        **_energy(plan, known_device(source)),
        "prepared_weights": len(plan.prepared),
        "edges_not_fused": dict(sorted(refused.items(), key=lambda item: (-item[1], item[0]))),
        **_placed(artifact.body),
    }


def _in_scenarios(plan: "Plan", device: "DeviceSpec | None", name: str | None) -> Facts:
    """The figures of a plan in its scenarios at the sizes that it is made for, or in one at several lengths."""
    if name is None and not plan.scenarios:
        return {}
    from tilec.analysis.scenario_figures import FEW_LENGTHS
    from tilec.pipeline.scenario_figures import scenario_figures
    from tilec.report.explain.scenario_text import scenario_rows

    figures = scenario_figures(plan, device, FEW_LENGTHS if name is not None else (), name)
    return {"scenarios": scenario_rows(figures)}


def _sizes(plan: "Plan", sizes: Mapping[str, int] | None) -> Facts:
    """The sizes that vary, what they fulfil, which ones the figures are for, and the variants that run at them."""
    from tilec.analysis.size_variants import constraint_facts, symbol_facts, variant_counts
    from tilec.ir.bind_plan import plan_sizes
    from tilec.ir.sizes import sizes_text

    counts = variant_counts(plan)
    return {
        "sizes": [
            {"symbol": s.symbol, "allowed": s.sizes, "likely": list(s.likely), "made_for": s.made_for, "from": s.origin}
            for s in symbol_facts(plan)
        ],
        "constraints": [{"holds": holds, "from": origin} for holds, origin in constraint_facts(plan)],
        "figures_at": sizes_text({**plan_sizes(plan), **(sizes or {})}),
        "variants": counts.variants,
        "several_variants": counts.groups_with_several,
        "guards": dict(counts.guards),
    }


def _energy(plan: "Plan", device: "DeviceSpec | None") -> Facts:
    """Energy of the whole plan and of every group with its traffic, where the device has figures."""
    from tilec.analysis.energy import plan_energy

    energy = plan_energy(plan, device) if device else None
    if energy is None:
        return {}
    groups = {
        group.name: {
            "traffic_bytes": group.traffic,
            "moving_femtojoules": group.moved,
            "computing_femtojoules": group.multiply_adds,
        }
        for group in energy.groups
    }
    return {"energy_femtojoules": energy.femtojoules, "energy_leaves_out": list(energy.untold), "per_group": groups}


def _kernels(artifact: Artifact, path: Path) -> Facts:
    body = artifact.body
    runtime = body.get("runtime")
    facts: Facts = {"programs": len(body.get("programs", {}))}
    if not isinstance(runtime, Mapping):
        return {**facts, "runs_here": "no: compiled for a device without a code generator"}
    library = runtime.get("library") or {}
    return {
        **facts,
        "library": library.get("file"),
        "library_bytes": size_of(path.parent / str(library.get("file"))),
        "inputs": [_spec(spec) for spec in runtime.get("inputs", ())],
        "outputs": [_spec(spec) for spec in runtime.get("outputs", ())],
        "arena_bytes": runtime.get("arena_bytes"),
        **({"symbols": _symbols(runtime["sizes"])} if "sizes" in runtime else {}),
        "thread_scratch_bytes": runtime.get("scratch_bytes", 0),
        "weights": [{"file": w["file"], "bytes": w["bytes"]} for w in runtime.get("weights", ())],
        "onnxruntime_calls": len(runtime.get("calls", ())),
        "threads": runtime.get("threads"),
    }


def _symbols(sizes: Mapping[str, Any]) -> list[Facts]:
    return [{"name": s.get("name"), "low": s.get("low", 0), "high": s.get("high")} for s in sizes.get("symbols", ())]


def _spec(spec: Mapping[str, Any]) -> Facts:
    return {"name": spec.get("name"), "type": spec.get("ttype") or spec.get("type"), "shape": spec.get("shape")}


def _report(artifact: Artifact, _path: Path) -> Facts:
    body = artifact.body
    outputs = [
        {"name": name, "tolerance": each.get("tolerance")} for name, each in sorted(body.get("outputs", {}).items())
    ]
    diverging = {"diverging": body["diverging"]} if "diverging" in body else {}
    on = verified_line(body).removeprefix("verified on: ") if "verified_on" in body else None
    return {"verdict": body.get("verdict"), "verified_on": on, "outputs": outputs, **diverging}


def _run(record: Mapping[str, Any]) -> Facts:
    """The record of a verification on this machine."""
    known = ("latency_us", "latency_sizes", "threads", "machine", "versions")
    return {name: record[name] for name in known if name in record}


def _placed(body: Mapping[str, Any]) -> Facts:
    counts = placement(body)
    placed = {"compiled": counts["compiled"], "total": counts["total"]}
    return {"placement": placed, "on_onnxruntime": counts["fallback"]}


_TELL = {"graph": _graph, "plan": _plan, "kernels": _kernels, "report": _report}
