"""The model zoo: the networks that tilec is measured on, built with onnx's helpers and seeded weights.

Each comes in the two forms that exporters write: "fused" (opset 20 or later: Gelu, LayerNormalization,
BatchNormalization as operators) and "decomposed" (opset 13: their primitives, Shape-Gather-Concat-Reshape chains,
Constant nodes). Both forms of a model have the same inputs, outputs and weights. onnx is imported on the first build.
"""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tilec.artifact import write_bytes
from tilec.errors import UsageError, did_you_mean
from tilec.zoo.forms import Form, Size
from tilec.zoo.registry import MODELS, Entry, find

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["Form", "build", "describe", "export", "names", "sizes"]


def names() -> tuple[str, ...]:
    """Names of the models, as `build` takes them."""
    return tuple(MODELS)


def describe(name: str) -> str:
    """One line about a model: architecture, inputs and outputs. Raises UsageError on an unknown name."""
    return find(name).description


def sizes(name: str) -> tuple[str, ...]:
    """The sizes, of `batch` and `seq`, that the model `name` can be built for. Raises UsageError on an unknown name."""
    return ("batch",) if find(name).seq is None else ("batch", "seq")


def build(
    name: str,
    *,
    form: Form = "fused",
    batch: int = 1,
    seq: int | None = None,
    dynamic: bool = False,
    seed: int = 0,
) -> "ModelProto":
    """The model `name` with weights drawn from `seed`.

    `seq` counts tokens (for llama-layer-decode those in the cache and the new one; for nerf-mlp rows per item). With
    `dynamic` the batch and, where there is one, the token count are the symbols "batch" and "seq" ("past" for the
    cache of llama-layer-decode, "height" and "width" for pixels but those of vgg16; nerf-mlp's rows are its "batch");
    `batch` and `seq` are then left at their defaults.
    Raises UsageError on an unknown name or form and on sizes that the model cannot have.
    """
    entry = find(name)
    if form not in get_args(Form):
        near = did_you_mean(form, get_args(Form))
        raise UsageError(
            f"no form {form!r}", name, f"Forms are fused and decomposed{f'; did you mean {near}?' if near else '.'}"
        )
    if seed < 0:
        raise UsageError(f"seed {seed} is negative", name, "Give a seed of 0 or more.")
    size = _size(name, entry, batch, seq, dynamic)
    from tilec.zoo.builder import GraphBuilder

    graph = GraphBuilder(name, form, seed, entry.opset)
    entry.load()(graph, size)
    return graph.finish()


def export(
    name: str,
    path: str | Path,
    *,
    form: Form = "fused",
    batch: int = 1,
    seq: int | None = None,
    dynamic: bool = False,
    seed: int = 0,
) -> Path:
    """Build a model and write it to the one file `path`, complete or not at all.

    Raises UsageError as `build` does, and TilecError when the file cannot be written.
    """
    model = build(name, form=form, batch=batch, seq=seq, dynamic=dynamic, seed=seed)
    target = Path(path)
    write_bytes(target, model.SerializeToString(deterministic=True))
    return target


def _size(name: str, entry: Entry, batch: int, seq: int | None, dynamic: bool) -> Size:
    """The extents to build for; symbols when dynamic."""
    if seq is not None and entry.seq is None:
        takes = ", ".join(other for other, its in MODELS.items() if its.seq is not None)
        raise UsageError("this model has no sequence", name, f"Leave seq out; it is for {takes}.")
    if dynamic:
        if batch != 1 or seq is not None:
            raise UsageError(
                "a dynamic model has symbols for batch and sequence",
                name,
                "Leave batch and seq out and bind the symbols when compiling (--shape batch=4), or leave dynamic out.",
            )
        return Size("batch", entry.symbol)
    length = entry.seq or 1 if seq is None else seq
    for what, value in (("batch", batch), ("seq", length)):
        if value < 1:
            raise UsageError(f"{what} {value} is less than 1", name, "Give a number of 1 or more.")
    if entry.longest is not None and length > entry.longest:
        raise UsageError(f"seq {length} is more than {entry.longest}", name, "The model's tables end there.")
    return Size(batch, length)
