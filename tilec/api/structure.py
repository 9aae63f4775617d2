"""Compiled models by their structure: a model whose twin, with other weights, is compiled takes over its code."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tilec.api.cache import Cache
from tilec.api.request import Request, keyed
from tilec.artifact import digest_bytes

_KEY = 32
"""Digits of a digest that name a note."""


def twin(request: Request) -> Path | None:
    """The folder of the compiled model of the same structure, for the same device and recipe; None without."""
    try:
        note = _note(request).resolve()  # the cache may share its notes with another
        key = note.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    folder = Cache(note.parents[1]).session(key)
    return folder if key and folder.is_dir() else None


def remember(request: Request) -> None:
    """Note that the request's model is compiled, for those of the same structure, unless its file is gone."""
    try:
        note = _note(request)
    except OSError:
        return
    if not note.parent.is_symlink():
        Cache(Path(request.cache)).keep(note, request.key)


def _note(request: Request) -> Path:
    skeleton = _skeleton(request.model, request.sha256)
    alike = replace(request, sha256=skeleton, weights=dict.fromkeys(request.weights, ""))
    return Path(request.cache) / "structures" / keyed(alike).key[:_KEY]


@lru_cache(maxsize=8)
def _skeleton(path: str, _sha256: str) -> str:
    """The sha256 of a model without the values of what may be weights: initializers of more than one element, but for
    integers that may be sizes or indices."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    plain = (onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
    for tensor in model.graph.initializer:
        if tensor.data_type not in plain and any(extent != 1 for extent in tensor.dims):
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                tensor.ClearField(field)
    return digest_bytes(model.SerializeToString(deterministic=True))
