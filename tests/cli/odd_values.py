"""Every option of every verb with odd values: a sweep over the command line as it describes itself.

`make odd-values` tries all of it on plans of five kinds and in odd surroundings (odd_places.py), and prints the calls
that end in other words than those of an explained error. ARGS are kinds, verbs and places, and `1/9` for each ninth
value: `ARGS="gpu verify 1/9"`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import typer.main
from hosts import install

from cli.forked import Ended, called, warm
from cli.odd_places import AS_ROOT, PLACES
from cli.odd_worlds import HERE, KINDS, World, listing, world
from tilec.cli import app

PLAN = "model.tilec"
SUBJECTS: dict[str, tuple[str, ...]] = {
    "import": ("model.onnx", "-o", "out.json"),
    "schedule": (f"{PLAN}/1-graph.json", "-o", "out.json"),
    "codegen": (PLAN,),
    "verify": (PLAN,),
    "compile": ("model.onnx", "-o", "out.tilec"),
    "run": (PLAN,),
    "bench": (PLAN, "--rounds", "1", "--processes", "1"),
    "capture": (PLAN, "-o", "out"),
    "diff": (PLAN, PLAN),
    "explain": (PLAN,),
    "inspect": (PLAN,),
    "bounds": (PLAN,),
    "report": (PLAN, "-o", "out.html"),
    "lint": (PLAN,),
    "schema": ("device",),
    "doctor": (),
    "device list": (),
    "device show": ("a100",),
    "zoo list": (),
    "zoo export": ("nerf-mlp", "--seq", "8", "-o", "out.onnx"),
    "cache list": (),
    "cache why": ("model.onnx",),
}
"""A call of each verb that is right; `device probe` measures for a minute and `cache clear` takes no values."""

PLANLESS = ("schema", "doctor", "device list", "device show", "zoo list", "zoo export", "cache list")
"""Verbs that read no plan: one kind is enough."""
RUNNING = ("run", "bench", "capture")
"""Verbs that run what is compiled."""
DEVICES = ("schedule", "compile", "cache why")
"""Verbs whose default device is `host`."""

VALUES = ("nosuch", "", "-1", "0", "9" * 25, "a=b", "a=0", "=", ",", ".", "model.onnx/x", "nan", "x[y=z]", "1e3", "ä\n")
VALUES += ("model.onnx", "batch=3", "batch=0", "batch=2..1", "batch=1..9/4", "w1=w1", "-")
ENDLESS = ("--repeat", "--rounds", "--processes")
"""Options whose large values are right, and take for ever."""

CODES = {0, 1, 2, 3, 4, 5, 6, 7}
OUTCOMES = ("cannot write", "nothing to reduce")
"""What may be wrong though a call is right."""

FAILING = ("lint", "diff")
"""Verbs whose exit code 1 is an answer."""


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The verbs by name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def right(verb: str, kind: str = "cpu") -> tuple[str, ...]:
    """A call of a verb that is right for a kind."""
    device = ("--device", KINDS[kind][0]) if verb in DEVICES and kind not in HERE else ()
    return (*verb.split(), *SUBJECTS[verb], *device)


def calls(values: Sequence[str] = VALUES, kind: str = "cpu") -> Iterator[tuple[str, ...]]:
    """Every verb with each of its options, and each of the values of those that take one."""
    root = typer.main.get_command(app.app)
    for verb, command in commands(root):
        if verb not in SUBJECTS or (kind != "cpu" and verb in PLANLESS):
            continue
        call = right(verb, kind)
        for option in command.params:
            name = next((each for each in option.opts if each.startswith("--")), None)
            if name is None:
                wrong = [*verb.split(), *SUBJECTS[verb][1:]]
                yield from ((*wrong, value) for value in values)
            elif not getattr(option, "is_flag", False):
                yield from ((*call, name, value) for value in values if len(value) < 20 or name not in ENDLESS)
            elif name != "--help":
                yield (*call, name)


def wrong(arguments: Sequence[str], ended: Ended, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What is wrong with how a call ends, and with what it leaves in its folder."""
    said = ended.err
    if ended.code not in CODES:
        yield f"exit code {ended.code}: {said[-300:]}"
    if "This is a bug in tilec" in said or "Traceback" in said or "Exception ignored" in said:
        yield said[-600:]
    elif ended.code and "error: " not in said.lower() and '"error"' not in said and arguments[0] not in FAILING:
        yield f"exit code {ended.code} without an error: {said[-300:]}"
    elif ended.code == 1 and not any(each in said for each in OUTCOMES) and arguments[0] not in FAILING:
        yield f"exit code 1 for a call that is wrong: {said[-300:]}"
    elif ended.code and not _explains(said) and arguments[0] not in FAILING:
        yield f"no place or no fix: {said[-300:]}"
    if ended.code in {1, 2, 6} and before != after and "cannot write" not in said:
        changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        yield f"exit code {ended.code}, and {', '.join(changed)} is changed"


def _explains(said: str) -> bool:
    """Whether an error has a line that says what to do, or is one of the parser of options, which says how to get
    help."""
    if '{"error":' in said:
        return '"fix":null' not in said
    lines = said.splitlines()
    at = max((number for number, line in enumerate(lines) if line.lower().startswith("error: ")), default=-1)
    return at >= 0 and (
        lines[0].startswith("Usage:") or "; " in lines[at] or any(line.startswith("  ") for line in lines[at + 1 :])
    )


def tried(arguments: Sequence[str], place: World) -> list[str]:
    """What is wrong with a call."""
    with place.copied() as folder:
        before = listing(folder)
        ended = called(arguments, folder)
        return list(wrong(arguments, ended, before, listing(folder)))


def _cpu_seconds() -> float:
    """What this process and those that ended took."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def in_places(
    kind: str, place: World, verbs: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[str, str, list[str]]]:
    """(surroundings, call, what is wrong) of the right call of every verb of a kind."""
    for verb in SUBJECTS:
        if (kind != "cpu" and verb in PLANLESS) or (kind not in HERE and verb in RUNNING):
            continue
        if verbs and verb.split()[0] not in verbs:
            continue
        call = right(verb, kind)
        for name in names:
            yield name, " ".join(call), list(PLACES[name](call, place))


def main(words: Sequence[str]) -> int:
    """Print what is wrong, call by call; returns how many are."""
    kinds = [word for word in words if word in KINDS] or list(KINDS)
    names = [word for word in words if word in PLACES]
    every = next((int(word[2:]) for word in words if word.startswith("1/")), 1)
    verbs = [word for word in words if word not in KINDS and word not in PLACES and "/" not in word]
    places = names or [name for name in PLACES if os.geteuid() == 0 or name not in AS_ROOT]
    found = 0
    with tempfile.TemporaryDirectory(prefix="tilec-odd-") as root:
        os.environ["XDG_CACHE_HOME"] = str(Path(root) / "home")
        install("usual", Path(root) / "home")
        warm()
        for kind in kinds:
            place, begin, count = world(kind, Path(root) / kind), _cpu_seconds(), 0
            asked = [] if names else [each for each in calls(kind=kind) if not verbs or each[0] in verbs][::every]
            told = (("", " ".join(map(repr, each)), tried(each, place)) for each in asked)
            for name, call, problems in chain(told, in_places(kind, place, verbs, places)):
                count += 1
                found += len(problems)
                for each in problems:
                    print(f"{kind}: {name} {call}\n  {each}", flush=True)
            print(f"{kind}: {count} calls, {_cpu_seconds() - begin:.0f} CPU s", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
