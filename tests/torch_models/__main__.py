"""`python -m tests.torch_models [MODEL...]`: models of packages through `torch.compile(backend="tilec")`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from docs.provenance import commit_now
from tests.cpu_limit import Finished, run_limited
from tests.torch_models.environment import ROOT, interpreter

HELP = """\
Each model is made with random weights and called three times, at two sizes, in a process of its own. Results are
compared with those of eager PyTorch: values with float64, types, shapes and strides with a run in the same types.

`in tilec` is the share of a model's operators that tilec takes, `native` the share of these that no other runtime runs.
`python -m docs.measured torch-models FILE` puts the rows of the output into the manual.
"""

STAGES = ("import", "schedule", "codegen")

KINDS = ("f32", "bf16", "f16")
"""Types: of the model, by autocast, of the model after `half()`."""

COLUMNS = (
    "model", "from", "type", "run by", "verdict", "in tilec", "native", "graphs", "compiled", "first call, CPU s",
    "error", "commit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A model in one type: what its process said, and that of inductor where it was asked for."""

    name: str
    family: str
    kind: str
    by: str
    said: dict[str, Any]
    peer: dict[str, Any] | None = None
    commit: str = ""

    @property
    def right(self) -> bool:
        """Whether results are those of eager PyTorch."""
        return not self.said["faults"]

    @property
    def share(self) -> float | None:
        """The share of a model's operators that run in native code."""
        total, nodes = self.said.get("total"), self.said.get("nodes")
        taken = self.said["taken"] / total if total else 1.0
        return taken * self.said["native"] / nodes if nodes and total != 0 else None

    def line(self) -> str:
        """Of the table."""
        said = self.said
        good = "equal" if "error" in said else "compiles"
        verdict = good if self.right else "; ".join(said["faults"][:3])
        if said.get("not_exported"):
            verdict = f"PyTorch does not export it: {said['not_exported'][:100]}"
        if said.get("not_in_pytorch"):
            verdict = f"PyTorch does not run it: {said['not_in_pytorch'][:100]}"
        if self.right and said.get("strides"):
            verdict = f"equal, other strides ({len(said['strides'])})"
        seconds = [f"{each['seconds']:.0f}" for each in (said, self.peer) if each and each.get("seconds")]
        cells = (
            self.name, self.family, self.kind, self.by, verdict.replace("|", "/").replace("\n", " ")[:200],
            _share(said, "taken", "total"), _share(said, "native", "nodes"),
            said.get("graphs", ""), said.get("compilations", ""), " / ".join(seconds),
            f"{said['error']:.0e}" if "error" in said else "", self.commit,
        )  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |"


def main(words: Sequence[str]) -> int:
    """Returns 1 where a model fails or computes something else."""
    parser = argparse.ArgumentParser(
        "tests.torch_models", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all")
    parser.add_argument("--types", nargs="*", default=KINDS[:1], choices=KINDS, help="default: f32")
    parser.add_argument("--by", default="tilec", choices=("tilec", "onnxruntime"), help="who runs what is translated")
    parser.add_argument("--exported", action="store_true", help="by torch.export and tilec.from_exported")
    parser.add_argument("--onnx", choices=("fixed", "open"), help="by torch.onnx.export, sizes fixed or open")
    parser.add_argument("--to", default="codegen", choices=STAGES, help="with --onnx: the last stage of tilec compile")
    parser.add_argument("--inductor", action="store_true", help="print the CPU seconds of inductor's first call, too")
    parser.add_argument("--limit", type=float, default=300.0, help="CPU seconds of a model (default: 300)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each Nth model only")
    parser.add_argument("--json", type=Path, help="write everything there; rows that it has are not run again")
    asked = parser.parse_args(words)
    python = interpreter()
    listed = json.loads(_output([str(python), "-m", "tests.torch_models.names"]))
    if unknown := [name for name in asked.models if name not in listed]:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(listed)}")
    rows: list[Row] = []
    kept = _kept(asked.json, listed)
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    for name in (asked.models or list(listed))[:: asked.every]:
        for kind in asked.types:
            if (row := kept.pop((name, kind, asked.by), None)) is not None:
                rows.append(row)
                print(row.line(), flush=True)
                continue
            way = ("one", name, kind, "exported" if asked.exported else "tilec", asked.by)
            by_onnx = ("by_onnx", name, kind, asked.onnx, asked.to)
            said = _said(python, asked.limit, *(by_onnx if asked.onnx else way))
            peer = _said(python, asked.limit, "one", name, kind, "inductor") if asked.inductor else None
            rows.append(Row(name, listed[name], kind, asked.by, said, peer, commit_now()))
            print(rows[-1].line(), flush=True)
            if asked.json:
                everything = [_as_json(row) for row in (*rows, *kept.values())]
                asked.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    print("\n" + summary(rows))
    return int(not all(row.right for row in rows))


def _kept(file: Path | None, listed: Mapping[str, str]) -> dict[tuple[str, str, str], Row]:
    """The rows of an earlier run, by model, type and who ran it."""
    found = {}
    if file is not None and file.is_file():
        for said in json.loads(file.read_text(encoding="utf-8")):
            name, kind, by = said["model"], said["type"], said["by"]
            found[name, kind, by] = Row(name, listed[name], kind, by, said, said["inductor"], said["commit"])
    return found


def summary(rows: Sequence[Row]) -> str:
    """How many are right, and the geometric mean of the native shares."""
    shares = [max(row.share, 1e-3) for row in rows if row.share is not None]
    mean = f"; native share {100 * geometric_mean(shares):.1f} % in geometric mean" if shares else ""
    kept_back = sum(bool(row.said.get("not_exported")) for row in rows)
    rows = [row for row in rows if not row.said.get("not_in_pytorch") and not row.said.get("not_exported")]
    same = sum(row.right and not row.said.get("strides") for row in rows)
    nudged = sum(row.said.get("judge") == "eager" for row in rows)
    more = f"; {nudged} judged by eager PyTorch on inputs a few last bits off" if nudged else ""
    more += f"; PyTorch does not export {kept_back}" if kept_back else ""
    return f"{sum(row.right for row in rows)} of {len(rows)} equal, {same} in strides too{mean}{more}"


def _said(python: Path, limit: float, module: str, *words: str) -> dict[str, Any]:
    done = run_limited([str(python), "-m", f"tests.torch_models.{module}", *words], limit)
    lines = done.output.strip().splitlines()
    try:
        said: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    except ValueError:
        said = {}
    if "faults" not in said:
        said = {"faults": [f"ends: {_end(done)}"]}
    return {**said, "errors": "" if not said["faults"] else done.errors[-4000:]}


def _end(done: Finished) -> str:
    last = done.errors.strip().splitlines()[-1:] or [f"exit {done.code}"]
    return done.ended or last[0][:200]


def _output(command: list[str]) -> str:
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip().splitlines()
    return lines[-1]


def _share(said: dict[str, Any], part: str, whole: str) -> str:
    return f"{said[part]}/{said[whole]}" if said.get(whole) else ""


def _as_json(row: Row) -> dict[str, Any]:
    own = {"model": row.name, "type": row.kind, "by": row.by, "commit": row.commit}
    return {**row.said, **own, "inductor": row.peer}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
