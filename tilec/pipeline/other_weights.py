"""What is made of weights, made anew for other ones: the plan and the code of a model stay.

A plan depends on the graph and not on the values of weights, except where import found something out from them; then
the graphs differ, and the model is compiled as any other. What is compared is the imported graph, not the model.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.abi.weights_file import is_weights_file
from tilec.artifact import Artifact, digest_object, encode, read_artifact
from tilec.errors import TilecError
from tilec.pipeline.job import FILES, Job


def take_over(job: Job, before: Mapping[str, Any], imported: Artifact, like: Path, folder: Path) -> bool:
    """Write plan and kernels of an imported graph into `folder`, as those of the graph `before` are in `like`, whose
    job was the same but for the model; False where the graphs differ by more than values of weights, or `like` is not
    whole: a compilation that ended in between leaves a plan of another graph, or kernels of another plan. Raises
    OSError where `like` is removed meanwhile."""
    try:
        plan, kernels = (read_artifact(like / FILES[kind], kind) for kind in ("plan", "kernels"))
    except TilecError:
        return False
    if (plan.inputs.get("graph"), kernels.inputs.get("plan")) != (digest_object(before), digest_object(plan.body)):
        return False
    change = _change(before, imported.body)
    if change is None or not change.covers(plan.body) or any(each.edited for each in (imported, plan, kernels)):
        return False
    _write(job, imported, change.planned(plan), kernels, change, like, folder)
    return True


@dataclass(frozen=True)
class _Change:
    """The constants of two graphs, and the names and digests of the files of the one that stand for those of the
    other."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    names: Mapping[str, str]

    def covers(self, plan: Mapping[str, Any]) -> bool:
        """Whether the constants of a plan are constants of the graph."""
        return all(self.before.get(name) == value for name, value in plan["constants"].items())

    def planned(self, plan: Artifact) -> Artifact:
        """The plan for the other constants."""
        body = _renamed({name: value for name, value in plan.body.items() if name != "constants"}, self.names)
        return Artifact("plan", plan.inputs, {**body, "constants": {n: self.after[n] for n in plan.body["constants"]}})


def _change(before: Mapping[str, Any], after: Mapping[str, Any]) -> _Change | None:
    """What became of the constants of a graph, where all else is the same."""
    if before.get("calls") or before.keys() != after.keys():
        return None
    old, new = before["constants"], after["constants"]
    names: dict[str, str] = {}
    if old.keys() != new.keys() or not all(_alike(old[name], new[name], names) for name in old):
        return None
    for file, sha256 in before["files"].items():
        names[sha256] = after["files"].get(names.get(file, file), "")
    apart = ("constants",)
    rest, same = ({key: value for key, value in each.items() if key not in apart} for each in (before, after))
    return _Change(old, new, names) if _renamed(rest, names) == same else None


def _alike(old: Any, new: Any, names: dict[str, str]) -> bool:
    """Whether two constants differ in their values, or in their file, alone; single numbers stand in code."""
    match old, new:
        case list(), list():
            return len(old) == len(new) and (len(old) != 1 or old == new)
        case {"file": str(before), **rest}, {"file": str(after), **same}:
            return rest == same and names.setdefault(before, after) == after
    return False


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A value with other names in it."""
    match value:
        case str():
            return names.get(value, value)
        case list():
            return [_renamed(each, names) for each in value]
        case Mapping():
            return {names.get(key, key): _renamed(each, names) for key, each in value.items()}
    return value


def _write(
    job: Job, imported: Artifact, plan: Artifact, kernels: Artifact, change: _Change, like: Path, folder: Path
) -> None:
    from tilec.codegen.prepare_weights import prepare_weights
    from tilec.ir.codec import plan_from_json

    assert job.device is not None
    made = {"model": imported.inputs["model"], "graph": digest_object(imported.body)}
    plan = Artifact("plan", {**plan.inputs, **made}, plan.body)
    plan.write(folder / FILES["plan"])
    weights = prepare_weights(plan_from_json(plan.body, str(folder)), folder, folder)
    names = dict(change.names)
    prepared = next((name for name in weights.files if is_weights_file(name)), "")
    for file in kernels.body.get("runtime", {}).get("weights", ()):
        if is_weights_file(file["file"]):
            names |= {file["file"]: prepared, file["sha256"]: weights.files[prepared]}
    body = _renamed(kernels.body, names)
    body["constants"] = {name: encode(place) for name, place in weights.places.items()}
    for file in body.get("runtime", {}).get("weights", ()):
        file["bytes"] = (folder / file["file"]).stat().st_size
    for path in _others(like, folder):
        _bring(path, folder / path.relative_to(like))
    inputs = {**kernels.inputs, "model": made["model"], "plan": digest_object(plan.body)}
    Artifact("kernels", inputs, body).write(folder / FILES["kernels"])


def _others(like: Path, folder: Path) -> Iterator[Path]:
    """The files of a compiled model that say nothing about weights, as far as they are not there."""
    for path in sorted(like.rglob("*")):
        name = path.relative_to(like)
        weights = is_weights_file(path.name) or path.suffix == ".safetensors"
        if path.is_file() and not path.is_symlink() and not weights and not (folder / name).exists():
            yield path


def _bring(real: Path, here: Path) -> None:
    here.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(real, here)
    except OSError:
        shutil.copyfile(real, here)
