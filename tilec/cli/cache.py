"""`tilec cache`: contents of the user's cache, the entry that a model would use, removal."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, Bind, BoundShapes, ModelDevice, ModelRecipe
from tilec.cli.page import Page
from tilec.cli.shape_flags import parse_shapes, parse_sizes
from tilec.cli.verb import EXIT_CODES, verb
from tilec.errors import TilecError, UsageError, several

if TYPE_CHECKING:
    from tilec.artifact import Json
    from tilec.report.cache_listing import Entry

app = typer.Typer(no_args_is_help=True, help="The cache: list what it holds, say what a model would use, make room.")

Kind = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only this kind of entry, as `list` names it; may be repeated."),
]
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_END_IT = "`tilec cache list` shows what it does; its process is called `tilec.background`."
_COUNTED = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


@app.command("list", epilog=EXIT_CODES)
@verb
def list_(console: Console, kind: Kind = None, json: AsJson = False) -> None:
    """List what the cache holds: kinds with sizes and ages; with --kind, every entry of it.

    \b
    tilec cache list
    tilec cache list --kind sessions
    tilec cache list --json
    """
    from tilec.artifact import cache_folder
    from tilec.background import Queue
    from tilec.cli.background import compiler_lines, compiler_to_json
    from tilec.report.cache_listing import KINDS, entries, require_kinds, total
    from tilec.report.formatting import bytes_text

    root, now, kinds = cache_folder(), time.time(), require_kinds(kind or ())
    cached = list(entries(root, kinds, now))
    queue = Queue(root)
    if json:
        summaries = {name: _summary(name, [e for e in cached if e.kind == name], now) for name in kinds}
        listed: Json = [_entry_to_json(entry, root, now) for entry in cached]
        console.json(
            {
                "bytes": total(cached),
                "compiler": compiler_to_json(queue, now),
                "entries": listed if kind else [],
                "folder": str(root),
                "kinds": summaries,
            }
        )
        return
    if kind:
        rows = [[_place(e, root), bytes_text(e.size), _age(e.age(now)), _described(e, root)] for e in cached]
        head = ["entry", "size", "age", "what it is"]
    else:
        of = {name: [e for e in cached if e.kind == name] for name in kinds}
        rows = [
            [name, str(len(of[name])), bytes_text(total(of[name])), _oldest(of[name], now), KINDS[name]]
            for name in kinds
        ]
        head = ["kind", "entries", "size", "oldest", "what it is"]
    console.data(Page.of_stdout().rows([head, *rows]))
    for line in compiler_lines(queue, now):
        console.note(line)
    console.note(f"{root}: {bytes_text(total(cached))}")


@app.command(epilog=EXIT_CODES)
@verb
def stop(console: Console) -> None:
    """End the compiler in the background; what waits for it stays, and the next session starts another one.

    \b
    tilec cache stop
    tilec cache stop && tilec cache clear --kind queue

    TILEC_WHILE_COMPILING=wait lets sessions compile themselves.
    """
    from tilec.artifact import cache_folder
    from tilec.background import Queue

    queue = Queue(cache_folder())
    try:
        ended = queue.stop()
    except OSError as error:
        raise TilecError("the compiler in the background does not end", str(queue.folder), _END_IT) from error
    waiting = len(queue.waiting())
    rest = f"; {several(waiting, 'model')} wait{'s' if waiting == 1 else ''} for the next session" if waiting else ""
    console.note(f"{'ended the compiler' if ended else 'no compiler is running'} in the background{rest}")


@app.command(epilog=EXIT_CODES)
@verb
def why(
    console: Console,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file.")],
    shape: BoundShapes = None,
    bind: Bind = None,
    device: ModelDevice = None,
    recipe: ModelRecipe = None,
    json: AsJson = False,
) -> None:
    """Say which compiled model `tilec run MODEL` would use, or why there is none yet.

    \b
    tilec cache why model.onnx
    tilec cache why bert.onnx --bind batch=1,seq=128 --json

    --shape matters for a model that only compiles with its sizes known.
    """
    from tilec.api.any_size import Attempt, with_sizes
    from tilec.api.cache import Cache
    from tilec.api.request import available
    from tilec.artifact import cache_folder
    from tilec.cli.cache_neighbours import asked, compiled, differences
    from tilec.cli.cache_request import request_of, sizes_of
    from tilec.report.cache_listing import entries
    from tilec.spec.resolve import resolve_device

    root = cache_folder()
    request = request_of(model, parse_sizes(bind or (), "--bind"), device or "host", recipe, root)
    sizes, refusal = sizes_of(model, request, {}, parse_shapes(shape or ())), Attempt(request).refusal
    if refusal is not None and len(sizes) > len(request.sizes):
        request = with_sizes(request, sizes)
    place, hit = Cache(root).session(request.key), available(request)
    sha256, shapes = resolve_device(device or "host").digest(), asked(model, request)
    others: dict[str, list[str]] = {}
    for entry in entries(root, ("sessions",)):
        other = compiled(entry.path)
        if other is not None and other.model == request.sha256 and entry.path != place:
            others[_place(entry, root)] = list(differences(other, request, sha256, shapes))
    key = place.relative_to(root).as_posix()
    if json:
        report: dict[str, Json] = {name: list(reasons) for name, reasons in others.items()}
        console.json(
            {
                "entry": key,
                "hit": hit,
                "model": request.sha256,
                "needs_sizes": refusal,
                "others": report,
                "sizes": dict(request.sizes),
            }
        )
        return
    lines = [f"{'hit' if hit else 'miss'}: {key}{'' if hit else ' is not there'}"]
    lines += [f"  it needs its sizes, --shape SYMBOL=SIZE: {refusal}"] if refusal is not None else []
    lines += [f"  {name}: {'; '.join(reasons)}" for name, reasons in others.items()]
    if not hit and not others:
        lines.append("  nothing in the cache was compiled from a file with these bytes")
    page = Page.of_stdout()
    console.data("\n".join(page.fold(line, 4) for line in lines))


@app.command(epilog=EXIT_CODES)
@verb
def clear(
    console: Console,
    kind: Kind = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Only what was not used for 30d, 12h, 45m or 2w.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Remove entries of the cache; all of it can be made again. Files that tilec did not put there stay.

    \b
    tilec cache clear --older-than 30d
    tilec cache clear --kind objects --kind bounds --dry-run
    tilec cache clear

    Models that a process has loaded stay in its memory; weights stay while a compiled model has them.
    """
    from tilec.artifact import cache_folder
    from tilec.report.cache_listing import entries, remove, require_kinds, total, without_shared
    from tilec.report.formatting import bytes_text

    root, now, least = cache_folder(), time.time(), _seconds(older_than)
    old = [e for e in entries(root, require_kinds(kind or ()), now) if e.age(now) >= least]
    before = without_shared(old, entries(root, ("sessions",), now))
    gone = before if dry_run else [entry for entry in before if remove(entry)]
    if json:
        console.json({"bytes": total(gone), "entries": [_place(e, root) for e in gone], "removed": not dry_run})
    elif dry_run and gone:
        console.data("\n".join(_place(entry, root) for entry in gone))
    things = f"{len(gone)} {'entry' if len(gone) == 1 else 'entries'}, {bytes_text(total(gone))}"
    console.note(f"{'would remove' if dry_run else 'removed'} {things}")
    if len(gone) < len(before):
        raise TilecError(
            f"{len(before) - len(gone)} of {len(before)} entries cannot be removed",
            str(root),
            "Check who owns the files there.",
        )


def _seconds(text: str | None) -> float:
    """The age of --older-than in seconds. Raises UsageError for another form."""
    if text is None:
        return 0.0
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no age", "--older-than", "Write it like 30d, 12h, 45m or 2w.")
    return float(int(match[1]) * _SECONDS[match[2]])


def _age(seconds: float) -> str:
    """An age in its largest unit: `3 d`."""
    unit, size = next(((unit, size) for unit, size in _COUNTED if seconds >= size), ("s", 1))
    return f"{int(seconds // size)} {unit}"


def _oldest(entries: "Sequence[Entry]", now: float) -> str:
    return _age(max(entry.age(now) for entry in entries)) if entries else ""


def _place(entry: "Entry", root: Path) -> str:
    return entry.path.relative_to(root).as_posix()


def _described(entry: "Entry", root: Path) -> str:
    """The description of an entry; with the calls that sessions counted, where it serves more than one size."""
    from tilec.api.cache import Cache
    from tilec.api.size_counts import FILE, calls_text, known_counts
    from tilec.cli.background import queued
    from tilec.cli.cache_neighbours import compiled
    from tilec.report.cache_listing import KINDS

    if entry.kind == "queue":
        return queued(entry.path, root, time.time()) or KINDS[entry.kind]
    model = compiled(entry.path) if entry.kind == "sessions" else None
    if model is None:
        return KINDS[entry.kind]
    counts = known_counts(Cache(root).model(model.model) / FILE)
    return f"{model.text}; {calls_text(counts)}" if model.open and counts.calls else model.text


def _summary(kind: str, entries: "Sequence[Entry]", now: float) -> "Json":
    from tilec.report.cache_listing import KINDS, total

    oldest = int(max((entry.age(now) for entry in entries), default=0))
    return {"bytes": total(entries), "count": len(entries), "meaning": KINDS[kind], "oldest_seconds": oldest}


def _entry_to_json(entry: "Entry", root: Path, now: float) -> "Json":
    return {
        "age_seconds": int(entry.age(now)),
        "bytes": entry.size,
        "kind": entry.kind,
        "name": _place(entry, root),
        "what": _described(entry, root),
    }
