"""`tilec generate`: tokens of a decoder, streamed, with what they take."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.artifact import Json
from tilec.cli.console import Console
from tilec.cli.generate_figures import Figures, in_turns
from tilec.cli.generate_text import Spoken, ids_of, prompts_of, seeds_of
from tilec.cli.options import MOST_THREADS, AsJson, Bind, ModelDevice, ModelRecipe
from tilec.cli.shape_flags import parse_sizes
from tilec.errors import TilecError, UsageError, several

if TYPE_CHECKING:
    from tilec.cli.generate_figures import Moved
    from tilec.decoding import Decoder
    from tilec.decoding.genai_config import GenaiConfig

RECIPE = "language-model"

MOST = 128
"""Tokens that are made where nothing else is said."""


def generate(
    console: Console,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER|MODEL|BUILD",
            help="Folder with genai_config.json, an ONNX file, or the folder of a compiled model.",
        ),
    ],
    prompt: Annotated[
        list[str] | None,
        typer.Option("--prompt", metavar="TEXT", help="What comes before; several are a batch."),
    ] = None,
    prompt_ids: Annotated[
        list[str] | None, typer.Option("--prompt-ids", metavar="ID[,...]", help="The same as tokens.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", min=1, help="Make at most so many tokens. [128, or what the model takes]")
    ] = None,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, help="0 takes the likeliest token, more draws.")
    ] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="Draw from so many tokens; 0: from all.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", help="Draw from the likeliest that come to this share.")] = 1.0,
    seed: Annotated[
        list[int] | None,
        typer.Option("--seed", min=0, help="Seed of what is drawn, or one for each prompt. [0, 1, ...]"),
    ] = None,
    stop_ids: Annotated[
        str | None, typer.Option("--stop-ids", metavar="ID[,...]", help="Tokens that end it, beside the model's own.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="NAME[,...]", help="Compare with onnxruntime, genai, openvino, llama.cpp, in turns."
        ),
    ] = None,
    gguf: Annotated[Path | None, typer.Option("--gguf", metavar="FILE", help="The same model for llama.cpp.")] = None,
    bind: Bind = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, max=MOST_THREADS, help="Threads of a run.")] = None,
    device: ModelDevice = None,
    recipe: ModelRecipe = None,
    json: AsJson = False,
) -> None:
    """Generate tokens with a decoder; an ONNX file is compiled first, into the cache.

    \b
    tilec generate qwen3-int4/ --prompt "Once upon a time"
    tilec generate decoder.onnx --prompt-ids 1,306,4658 --tokens 64 --json
    tilec generate qwen3-int4/ --prompt-ids 1,2,3 --prompt-ids 4,5
    tilec generate qwen3-int4/ --prompt-ids 1,2,3 --against onnxruntime,genai

    Caches of keys and values stay where they are if the model allows it (the recipe language-model). Text needs the
    model's tokenizer.json and `pip install 'tilec[generate]'`.
    """
    from tilec.decoding import Generation, decoder_of, generate_batch
    from tilec.decoding.sampling import Sampling
    from tilec.runtime import load

    given_options = {"--bind": bind, "--device": device, "--recipe": recipe}
    for option in (name for name, value in given_options.items() if value and _is_built(model)):
        raise UsageError("this model is compiled already", option, "Name the ONNX file instead.")
    sampling = Sampling(temperature, top_k, top_p)
    peers = _peers(against, temperature)
    config = _config(model)
    file = _with_caches(model if config is None else config.model)
    given, text = prompts_of(model, prompt or [], prompt_ids or [])
    seeds = seeds_of(seed, len(given))
    longest, count = max(map(len, given)), len(given)
    most = _most(config, longest, tokens)
    folder = model if _is_built(model) else _compiled(console, file, bind, device or "host", recipe or RECIPE, count)
    session = load(folder, threads=threads)
    decoder = decoder_of(session, config)
    possible = decoder.most(longest) if tokens is None else None
    most = most if possible is None else max(min(most, possible), 1)
    stops = () if peers else (*(() if config is None else config.stops), *ids_of(stop_ids or "", "--stop-ids"))
    told = Generation(sum(map(len, given)))
    made = generate_batch(
        session, given, most=most, stops=stops, sampling=sampling, seeds=seeds, decoder=decoder, told=told
    )
    with Spoken(text, count, quiet=json) as spoken:
        for step in made:
            spoken.add(step)
    room = decoder.room_for(longest, most)
    last = longest + len(told.steps)
    figures = Figures.of(told, _moved(folder, decoder, last, room, count) if json or console.verbosity > 0 else None)
    for line in figures.lines() if not json else ():
        console.note(line)
    compared: dict[str, Json] = {}
    for name in peers:
        try:
            result = in_turns(name, _file_of(file), session, decoder, given, most, threads, gguf)
        except TilecError as error:  # another runtime's obstacle is none of the others'
            compared[name] = {"error": error.message}
            line = " ".join(filter(None, (f"not compared: {error.message}.", error.hint)))
        else:
            compared[name], line = result.json(), result.line()
        if not json:
            console.note(f"{name}: {line}")
    if json:
        console.json({**spoken.json(told), **figures.json(), **({"against": compared} if peers else {})})


def _peers(against: str | None, temperature: float) -> list[str]:
    from tilec.decoding.peers import PEERS

    names = against.split(",") if against else []
    for name in names:
        if name not in PEERS:
            raise UsageError(f"{name!r} is no runtime that generates", "--against", f"Take of {', '.join(PEERS)}.")
    if names and temperature:
        raise UsageError("what is drawn cannot be compared", "--temperature", "Leave it out with --against.")
    return names


def _is_built(model: Path) -> bool:
    from tilec.abi.manifest import FILE

    return (model / FILE).is_file()


def _with_caches(model: Path) -> Path:
    """The file of a model; of a merged decoder one, in the cache, that has the branch which reads caches alone."""
    from tilec.api.cache import Cache
    from tilec.api.model_source import open_file, with_values
    from tilec.artifact import cache_folder
    from tilec.decoding.decoder import READS_CACHES

    if not model.is_file():
        return model
    opened = open_file(model, cache_folder())
    chosen = {name: True for name in opened.header.choices if name == READS_CACHES}
    return with_values(opened, chosen, Cache(cache_folder())).path if chosen else model


def _file_of(model: Path) -> Path:
    """The ONNX file that a compiled model was made from, where it lies in its folder."""
    files = sorted(model.glob("*.onnx")) if model.is_dir() else [model]
    if len(files) != 1:
        raise UsageError("the folder does not have the model's ONNX file", str(model), "Name the ONNX file instead.")
    return files[0]


def _config(model: Path) -> "GenaiConfig | None":
    """What the model's folder says of it; a compiled model and an ONNX file need not."""
    from tilec.decoding.genai_config import FILE, read_genai_config

    folder = model if model.is_dir() else model.parent
    if (folder / FILE).is_file() or (model.is_dir() and not _is_built(model)):
        return replace(read_genai_config(folder), model=model) if model.is_file() else read_genai_config(folder)
    return None


def _most(config: "GenaiConfig | None", prompt: int, tokens: int | None) -> int:
    """How many tokens to make. Raises UsageError for more than a model takes."""
    if config is None or config.longest is None:
        return tokens or MOST
    left = config.longest - prompt
    if left < (tokens or 1):
        wanted = f"a prompt of {several(prompt, 'token')} and {tokens or 1} more"
        hint = f"Ask for fewer: --tokens {left}." if left > 0 else "Give a shorter prompt."
        raise UsageError(f"{wanted} are beyond the model's {config.longest}", hint=hint)
    return tokens or min(MOST, left)


def _compiled(console: Console, model: Path, bind: list[str] | None, device: str, recipe: str, batch: int) -> Path:
    """The folder in the cache with the model compiled for a batch and any length."""
    from tilec.api.any_size import compiled_already, compiled_for
    from tilec.api.model_source import open_file
    from tilec.artifact import cache_folder
    from tilec.cli.cache_request import request_of

    bound = parse_sizes(bind or (), "--bind")
    cache = cache_folder()
    header = open_file(model, cache).header
    batches = {port.shape[0] for port in header.inputs if port.shape and isinstance(port.shape[0], str)}
    if len(batches) == 1:
        bound = {batches.pop(): batch, **bound}
    request = request_of(model, bound, device, recipe, cache, rooms=True)
    if compiled_already(request, {}):
        return compiled_for(request, {})[0]
    with console.stage("compile"):
        return compiled_for(request, {})[0]


def _moved(folder: Path, decoder: "Decoder", total: int, room: int, batch: int) -> "Moved | None":
    """What the plan moves for the last of `total` tokens of each sequence; None where it does not say."""
    from tilec.cli.generate_figures import Moved

    return Moved.of(folder, decoder, total, room, batch)
