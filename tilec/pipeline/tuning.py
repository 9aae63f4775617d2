"""Tuning of `schedule`: the record's file, where its times hold, and measuring on this machine (W20, W40)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.artifact import digest_bytes, digest_file, digest_object
from tilec.errors import ConfigError, UnsupportedError, UsageError
from tilec.pipeline.building import builds_on
from tilec.pipeline.host_match import require_host
from tilec.pipeline.job import Job
from tilec.pipeline.record_file import existing, read_record, require_writable, update_record
from tilec.pipeline.workers import workers_of
from tilec.progress import Advance

if TYPE_CHECKING:
    from tilec.ir.graph import Graph
    from tilec.ir.plan import Plan
    from tilec.scheduler.tuning.record import Entry
    from tilec.scheduler.tuning.tuner import Tuner

RECORD_FILE = "tuning.json"
"""The record beside the plan, where none is named."""

_DECIDING = ("ir", "lower", "codegen", "runtime")
"""Packages that decide how fast a plan runs."""


def record_digests(job: Job) -> dict[str, str]:
    """Digests of the tuning record that a plan depends on; a plan that is to be measured is never fresh."""
    options = job.recipe.schedule
    if options.profile:
        return {"record": ""}
    return {"record": digest_file(existing(Path(options.record)))} if options.record is not None else {}


def refuse_tuning(job: Job) -> None:
    """Raise for tuning that no model can have: UsageError, ArtifactError for a record that cannot be read, ConfigError
    for another objective than time, UnavailableError for a device that cannot be timed here."""
    options = job.recipe.schedule
    if job.workers is not None and not options.profile:
        raise UsageError("workers build candidates that are measured", "--workers", "Add --profile, or leave it out.")
    if options.record is None and not options.profile:
        return
    if options.objective != "time":
        raise ConfigError(
            f"tuning records hold times, the objective is {options.objective}",
            "schedule.objective",
            "Leave --profile and --record out, or minimise time.",
        )
    if options.record is not None and (Path(options.record).exists() or not options.profile):
        read_record(existing(Path(options.record)))
    if options.profile:
        assert job.device is not None
        require_host(job.device)


@contextmanager
def tuner_of(job: Job, graph: "Graph", target: Path, advance: Advance) -> "Iterator[Tuner | None]":
    """The tuner that chooses between candidates of a plan for `target`; None where the cost model alone does.

    Raises what `refuse_tuning` raises, and UnsupportedError for a model that cannot be measured.
    """
    options = job.recipe.schedule
    refuse_tuning(job)
    if options.record is None and not options.profile:
        yield None
        return
    from tilec.scheduler.tuning.record import Record
    from tilec.scheduler.tuning.tuner import Tuner, Tuning

    assert job.device is not None
    place = record_place(job, target)
    setting = {
        "device": job.device.digest(),
        "codegen": job.recipe.digest("codegen"),
        "tilec": _sources(),
        "tvm": _version("apache-tvm"),
    }
    if not options.profile:
        yield Tuner(Tuning(read_record(existing(place)), setting, options.budget, advance=advance))
        return
    if graph.symbols:
        flags = " ".join(f"--shape {symbol}=SIZE" for symbol in graph.symbols)
        raise UnsupportedError("only fixed sizes can be measured", graph.name, f"Bind them: {flags}.")
    from tilec.bench.measure import measuring

    with ExitStack() as running:
        workers = running.enter_context(workers_of(job.workers))
        build = None if job.workers is None else builds_on(workers, job.device, job.recipe.codegen)
        bench = running.enter_context(measuring(job.device, job.recipe.codegen, build=build))

        def measure(plans: "Sequence[Plan]") -> "list[float | None]":
            require_writable(place)
            return bench(plans)

        def keep(entry: "Entry", instead: "Entry | None") -> Record:
            return update_record(place, lambda record: record.merged(entry, instead))

        record = read_record(place) if place.exists() else Record()
        yield Tuner(Tuning(record, setting, options.budget, measure, keep, job.listener.step, advance))
        update_record(place, lambda record: record)


def record_place(job: Job, target: Path) -> Path:
    """The file of the tuning record of a plan that is written to `target`."""
    named = job.recipe.schedule.record
    return target.parent / RECORD_FILE if named is None else Path(named)


def told(tuner: "Tuner") -> str:
    """`tuning: 12 measured, 29 recorded, 3 left to the model (no entry for this group: 3)`."""
    from tilec.scheduler.tuning.tuner import MEASURED, RECORDED

    counts = tuner.sources
    parts = [f"{counts[source]} {source}" for source in (MEASURED, RECORDED) if counts[source]]
    reasons = {why: count for why, count in sorted(counts.items()) if why not in (MEASURED, RECORDED)}
    if reasons:
        why = ", ".join(f"{why}: {count}" for why, count in reasons.items())
        parts.append(f"{sum(reasons.values())} left to the model ({why})")
    return f"tuning: {', '.join(parts) or 'no group has more than one candidate'}"


def _sources() -> str:
    """A digest that changes with the code that decides how fast a plan runs."""
    root = Path(__file__).parents[1]
    files = sorted(path for name in _DECIDING for kind in ("*.py", "*.ll") for path in (root / name).rglob(kind))
    contents = {path.relative_to(root).as_posix(): digest_bytes(path.read_bytes()) for path in files}
    return digest_object(contents)[:16]


def _version(tool: str) -> str:
    """The version of a tool; empty when it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(tool)
    except PackageNotFoundError:
        return ""
