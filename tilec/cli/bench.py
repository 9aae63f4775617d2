"""`tilec bench`: compiled models timed against other runtimes, in turns."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.bench_results import results_json, results_table
from tilec.cli.completion import recipes
from tilec.cli.console import Console
from tilec.cli.import_ import folder_of
from tilec.cli.options import MOST_THREADS, AsJson, Device, Scenario, flags, job_on_device
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import UsageError, did_you_mean
from tilec.pipeline import FILES, Job, StageInput, compile_model, model_file, read_source

if TYPE_CHECKING:
    from tilec.bench import Comparison, Timing
    from tilec.bench.drawn_inputs import DrawnInputs
    from tilec.spec.recipe import BenchRecipe


def bench(
    console: Console,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="BUILD|MODEL...", help="Folders of compiled models, ONNX files, names of the zoo."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME[,...]",
            help="Of onnxruntime and openvino; on GPUs onnxruntime-cuda and tensorrt. [onnxruntime]",
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Batch of models of the zoo.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, max=MOST_THREADS, help="Threads of every runtime (default: all cores)."),
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", min=1, help="Sets of processes. [3]")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Turns in each process. [5]")] = None,
    bar: Annotated[float, typer.Option("--bar", min=0.0, help="The ratio asked for; 0.97 is no slower.")] = 0.97,
    device: Device = None,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="SYMBOL=SIZE[,...]", help="Time models with symbols at these sizes."),
    ] = None,
    scenario: Scenario = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="FILE.npz", help="Time the one model on these inputs.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE",
            help="Recipe of kind bench.",
            autocompletion=recipes,
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="Write a Chrome trace with one event a group.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Time compiled models beside other runtimes.

    \b
    tilec bench model.tilec/
    tilec bench mobilenet-v2 bert-base --threads 2
    tilec bench model.onnx --against onnxruntime,openvino --bar 1.2 --json
    tilec bench model.tilec/ --trace trace.json
    tilec bench model.tilec/ --shape batch=1,seq=384
    tilec bench decoder.tilec/ --scenario decode --shape past=2000
    tilec bench cluster/build --inputs cluster/inputs.npz

    Each runtime has a warm process and preallocated buffers of its own; they run in turns. The ratio is the peer's
    time over tilec's, its median over all rounds with a 95 % bootstrap interval. It holds when the lower end reaches
    the bar less 0.02. Beside it stand the seconds that loading the model takes and the most memory that the process
    had; --json also says how long it took to compile (or to find compiled). A model with symbols is timed at the
    sizes that its plan is made for, or at those of --shape; --scenario takes the sizes of a scenario, and --shape those
    that it leaves free. Masks of models with caches leave no token out.

    The trace holds the median run of each model with bytes, operations and the share of its roofline of every group;
    groups below 60 % of it that take more than 5 % of their model are named. As trace.json beside the plan, its times
    stand beside the predicted ones on the page of `tilec report`.
    """
    from tilec.bench import Timing, chosen
    from tilec.cli.bench_trace import told, trace_model, traced_device, write_trace
    from tilec.spec.cpus import usable_cpus

    given = _recipe(recipe)
    names = models or (list(given.models) if given else [])
    if not names:
        raise UsageError("nothing to time", hint="Name a compiled folder, an ONNX file or a model of the zoo.")
    peers = against.split(",") if against else list(given.against) if given else ["onnxruntime"]
    chosen(peers)
    if inputs is not None and (len(names) > 1 or shape or scenario):
        raise UsageError("they are those of one model, and have its sizes", "--inputs", "Leave the other models out.")
    timing = Timing(
        threads or (given and given.threads) or len(usable_cpus()),
        processes or (given.processes if given else 3),
        rounds or (given.rounds if given else 5),
    )
    target = device or (given.device if given else None)
    builds: dict[str, StageInput] = {}
    compiling: dict[str, float] = {}
    for name in names:
        begin = time.perf_counter()
        builds[name] = _build(console, name, batch, target)
        compiling[name] = time.perf_counter() - begin
    devices = {name: traced_device(build, target) for name, build in builds.items() if trace is not None}
    given_sizes = parse_shapes(shape or ())
    results: dict[str, Comparison] = {}
    feeds: dict[str, DrawnInputs] = {}
    for name, build in builds.items():
        feeds[name] = _inputs(console, build, given_sizes, scenario, inputs)
        results[name] = _timed(console, build, peers, timing, feeds[name])
    models_traced = {
        name: trace_model(console, name, process, builds[name], device, timing.threads, feeds[name])
        for process, (name, device) in enumerate(devices.items())
    }
    if trace is not None:
        write_trace(trace, list(models_traced.values()))
    if json:
        groups = {name: model.json() for name, model in models_traced.items()}
        console.json(results_json(results, compiling, timing, bar, groups))
    else:
        console.data(results_table(results, bar))
    for name, model in models_traced.items():
        for line in told(name, model):
            console.note(line)
    if not all(each.precedence for each in results.values()):
        console.note("note: neighbours had the same priority; /proc/self/autogroup cannot be written here")


def _recipe(name: str | None) -> "BenchRecipe | None":
    """The bench recipe with this name or file."""
    if name is None:
        return None
    from tilec.spec.located import parse_yaml, validate
    from tilec.spec.recipe import BenchRecipe
    from tilec.spec.resolve import recipe_source

    source = recipe_source(name)
    return validate(BenchRecipe, parse_yaml(source.text, source.place))


def _build(console: Console, name: str, batch: int, device: str | None) -> StageInput:
    """The kernels of a compiled model, ONNX file or zoo model; compiled now if necessary."""
    from tilec import zoo

    path = Path(name)
    if path.is_dir():
        return read_source("kernels", path)
    if path.is_file():
        return _compiled(console, path, folder_of(path), device)
    if name in zoo.names():
        return _of_zoo(console, name, batch, device)
    near = did_you_mean(name, zoo.names())
    hint = (
        f"Did you mean {near!r} of the zoo?" if near else "Name a compiled folder, an ONNX file or a model of the zoo."
    )
    raise UsageError(f"there is no {name!r}", hint=hint)


def _of_zoo(console: Console, name: str, batch: int, device: str | None) -> StageInput:
    """A model of the zoo, exported and compiled into the cache once for each version of the zoo."""
    from importlib.resources import files

    from tilec import zoo
    from tilec.artifact import cache_folder, digest_bytes

    sources = sorted(file.name for file in files("tilec.zoo").iterdir() if file.name.endswith(".py"))
    version = digest_bytes(b"".join(files("tilec.zoo").joinpath(source).read_bytes() for source in sources))[:12]
    folder = cache_folder() / "zoo" / version
    model = folder / f"{name}-batch{batch}.onnx"
    if not model.is_file():
        zoo.export(name, model, batch=batch)
    return _compiled(console, model, folder / f"{name}-batch{batch}.tilec", device)


def _compiled(console: Console, model: Path, folder: Path, device: str | None) -> StageInput:
    job = job_on_device(console, None, flags(device=device), folder)
    assert job is not None
    return compile_model(job, model, folder, last="codegen")["codegen"]


def _model(console: Console, build: StageInput, files: Mapping[str, str]) -> Path:
    from tilec.spec.recipe import CompileRecipe

    return model_file(Job(CompileRecipe(), console), build, files)


def _inputs(
    console: Console, build: StageInput, sizes: Mapping[str, int], scenario: str | None, file: Path | None
) -> "DrawnInputs":
    """The inputs in a file, or inputs of a model that it accepts, at these sizes of its symbols, or of a scenario.

    Raises UsageError for sizes that the plan does not have or allow, for a scenario that it does not have, and for a
    model that accepts none of the inputs that are tried.
    """
    from tilec.bench.drawn_inputs import drawn_inputs, inputs_of_file
    from tilec.importer.upgrade_opset import modern_file
    from tilec.ir.bind_plan import complete_sizes
    from tilec.ir.codec import plan_from_json
    from tilec.ir.scenarios import scenario_sizes_of
    from tilec.ir.sizes import sizes_text
    from tilec.verify.input_choices import compared_values
    from tilec.verify.inputs import Draw

    plan = read_source("plan", build.folder / FILES["plan"])
    read = plan_from_json(plan.body, plan.place)
    if file is not None:
        return inputs_of_file(read, file)
    model = _model(console, build, read.files)
    there = complete_sizes(read, sizes) if scenario is None else scenario_sizes_of(read, scenario, sizes)
    with modern_file(model) as newer:
        drawn = drawn_inputs(read, newer, Draw(0, choices=compared_values(model)), there, sizes)
    if drawn.sizes:
        console.note(f"bench {read.name} at {sizes_text(drawn.sizes)}")
    return drawn


def _timed(
    console: Console, build: StageInput, peers: Sequence[str], timing: "Timing", inputs: "DrawnInputs"
) -> "Comparison":
    """One model and its peers, timed on these inputs."""
    from tilec.bench import time_interleaved
    from tilec.importer.upgrade_opset import modern_file

    plan = read_source("plan", build.folder / FILES["plan"])
    model, title = _model(console, build, plan.body["files"]), f"bench {plan.body['name']}"
    with modern_file(model) as newer, console.stage(title) as advance:
        return time_interleaved(build.folder, newer, inputs.feeds, peers, timing, advance, inputs.model_feeds)
