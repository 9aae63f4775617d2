"""`tilec lint`: errors and suspicious values in devices, recipes and artifacts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson
from tilec.errors import UsageError, did_you_mean
from tilec.version import __version__

if TYPE_CHECKING:
    from tilec.artifact import Artifact
    from tilec.ir.plan import Plan
    from tilec.report.lint.finding import Finding

_ALTERED = re.compile(r"[^\[\]]+\[.*=.*\]")
"""A device with other values: `a100[levels.smem.capacity=64KiB]`."""

_FORMATS = ("table", "json", "sarif", "github")


def lint(
    console: Console,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Devices, recipes, artifacts, folders of these; or devices, as --device takes them.",
        ),
    ],
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", metavar="FORMAT", help="table, json, sarif (2.1.0) or github (annotations).")
    ] = "table",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")] = False,
    json: AsJson = False,
) -> None:
    """Look for mistakes in devices, recipes and artifacts; each finding with its place and its fix.

    \b
    tilec lint my-device.yaml recipe.yaml
    tilec lint model.tilec/ --strict
    tilec lint a100 default --format json
    tilec lint devices/ --format sarif > lint.sarif
    tilec lint model.tilec/2-plan.json --format github

    The exit code is 1 when there are errors (with --strict: findings of any kind). `tilec explain CODE` has a page for
    every code.
    """
    from tilec.report.lint import forms

    if json and format not in ("table", "json"):
        raise UsageError(f"--json and --format {format} are two forms", hint="Leave one of them out.")
    form = "json" if json else format
    if form not in _FORMATS:
        near = did_you_mean(form, _FORMATS)
        hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(_FORMATS)}."
        raise UsageError(f"--format {form!r} is not known", hint=hint)
    looked: list[str] = []
    all_findings: list[Finding] = []
    for name in dict.fromkeys(files):
        for file, findings in _findings(name):
            looked.append(file)
            all_findings += findings
    if form == "json":
        console.json(forms.to_json(all_findings))
    elif form == "sarif":
        console.json(forms.to_sarif(all_findings, __version__))
    elif all_findings:
        console.data(forms.to_github(all_findings) if form == "github" else forms.table(all_findings))
    console.note(f"lint: {forms.counted(all_findings, len(looked))}")
    if any(strict or each.rule.severity == "error" for each in all_findings):
        raise typer.Exit(1)


def _findings(name: str) -> Iterator[tuple[str, "list[Finding]"]]:
    """Every file that a name refers to, with its findings. Raises UsageError for a name that refers to none."""
    from tilec.report.lint.files import lint_file, lint_text
    from tilec.spec.resolve import device_source, packaged

    path = Path(name)
    if path.is_dir():
        inside = [each for each in sorted(path.rglob("*.yaml")) if each.is_file()]
        inside += [path / each for each in _artifacts() if (path / each).is_file()]
        if not inside:
            hint = "Devices and recipes end in .yaml; `tilec compile` writes artifacts."
            raise UsageError("there is nothing to look at in this folder", name, hint)
        for each in inside:
            yield str(each), lint_file(each, _recounted)
        return
    if _ALTERED.fullmatch(name) and not path.exists():
        yield name, lint_text(device_source(name).text, f"{name}.yaml", None)
        return
    known = {kind: packaged(kind) for kind in ("devices", "recipes", "types")}
    kind = next((kind for kind, names in known.items() if name in names), None)
    if kind is None or path.is_file():
        if not path.exists() and path.suffix not in (".yaml", ".yml", ".json"):
            near = did_you_mean(name, [each for names in known.values() for each in names])
            raise UsageError("no such file", name, f"Did you mean {near!r}?" if near else None)
        yield name, lint_file(path, _recounted)
        return
    file = f"{kind}/{name}.yaml"
    yield file, lint_text(known[kind][name].read_text(encoding="utf-8"), file, None)


def _recounted(artifact: "Artifact", plan: "Plan", file: str) -> "Plan":
    """A legal plan with the costs that its decisions come to; predicted times stay where its device is not here."""
    from tilec.cli.options import known_device
    from tilec.pipeline import StageInput, counted_anew

    source = StageInput(Path(file), artifact)
    return counted_anew(plan, known_device(source)).plan


def _artifacts() -> tuple[str, ...]:
    from tilec.pipeline import FILES

    return tuple(FILES.values())
