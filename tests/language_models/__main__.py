"""`python -m tests.language_models [FAMILY.FORM...]`: language models, compiled with open lengths and decoded,
with caches in place where the model allows it.

Prints a table in Markdown, one line a model: its nodes and those that are native, the verdict of tilec, the largest
relative distance of its logits from those of exact arithmetic and that of onnxruntime's (128 greedy tokens behind
prompts of 1, 17, 100 and 511 and behind four of different length beside each other), the share of equal tokens,
processor seconds, and the commit. A word may be a family, a form, or both. A line that was made at the same commit is
told again from `build/language-models/lines.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.provenance import commit_now
from tests.cpu_limit import run_limited
from tests.language_models.environment import FOLDER, ROOT, interpreter
from tests.outside.compiled import compiled
from tilec.artifact import write_text
from tilec.cli.generate import RECIPE

LIMIT = 600.0
"""Processor seconds after which a compilation is given up."""

_GROWING, _FIXED = "growing-18", "fixed-23"
MODELS: dict[str, tuple[str, ...]] = {
    "qwen3": ("int4", "int4-exact", "int4-128", "int4-shared", "int8", "fp32", "fp16", "cache8", _GROWING, _FIXED),
    "llama": ("int4", "fp32", _GROWING, "growing-23", "fixed-18", _FIXED, "fixed-24"),
    "qwen2": ("int4", "int4-zeros", _GROWING),
    "mistral": ("int4", _GROWING, _FIXED),
    "phi": (_GROWING, _FIXED),
    "phi3": ("int4", _GROWING, _FIXED),
    "gemma2": ("int4", _GROWING, _FIXED),
    "gemma3": (_GROWING, _FIXED),
    "olmo": ("int4",),
    "smollm3": ("int4",),
    "mixtral": (_GROWING,),
    "qwen3-moe": (_GROWING,),
    "gpt-oss": (_GROWING,),
    "whisper": (_GROWING,),
    "t5": (_GROWING,),
}  # fmt: skip
"""Family -> the forms that it is run in."""

COLUMNS = (
    "model",
    "nodes",
    "native",
    "on onnxruntime",
    "verdict",
    "ours",
    "onnxruntime's",
    "tokens",
    "CPU s",
    "commit",
)


def main(words: Sequence[str]) -> int:
    """Returns 1 where a model does not compile, does not verify or decodes something else."""
    python = interpreter()
    names = [f"{family}.{form}" for family, forms in MODELS.items() for form in forms]
    chosen = [name for name in names if not words or {name, *name.rsplit(".", 1)} & set(words)]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed, kept = 0, FOLDER / "lines.json"
    lines: dict[str, tuple[str, bool]] = json.loads(kept.read_text()) if kept.is_file() else {}
    for name in chosen:
        if not lines.get(name, ("", False))[0].endswith(f" {commit_now()} |"):
            lines[name] = _row(python, name)
            write_text(kept, json.dumps(lines, indent=1))
        line, right = lines[name]
        failed |= not right
        print(line, flush=True)
    return failed


def _row(python: Path, name: str) -> tuple[str, bool]:
    model, build = FOLDER / name / "model.onnx", FOLDER / f"{name}.tilec"
    if not model.is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [str(python), "-m", "tests.language_models.build", name]
        offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=offline, capture_output=True, check=False)
        (FOLDER / f"{name}.log").write_bytes(done.stdout + done.stderr)
        if done.returncode:
            return f"| {name} | | | | not exported | | | | | {commit_now()} |", False
    found = compiled(model, build, LIMIT, "--recipe", RECIPE)
    figures, near = _decoded(model, build) if found.right else (" | | ", False)
    first = f"{found.nodes} | {found.native} | {found.reasons} | {found.verdict}"
    return f"| {name} | {first} | {figures} | {found.seconds:.0f} | {commit_now()} |", near


def _decoded(model: Path, build: Path) -> tuple[str, bool]:
    done = run_limited([sys.executable, "-m", "tests.language_models.run", str(model), str(build)], LIMIT)
    if done.code:
        return f"{done.ended or (done.errors.strip().splitlines() or [f'exit {done.code}'])[-1][:160]} | | ", False
    found = json.loads(done.output).values()
    ours, theirs = (max(each[which] for each in found) for which in ("ours", "theirs"))
    tokens = min(each["tokens"] for each in found)
    return f"{ours:.1e} | {theirs:.1e} | {tokens:.0%}", all(each["right"] for each in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
