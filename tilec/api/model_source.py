"""From what a session is given, a path or bytes and options, to a model file with its header and digests."""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from tilec.api.cache import Cache, temporary_cache
from tilec.api.cache_eviction import used
from tilec.api.header import Header, read_header
from tilec.api.held_files import HeldFile
from tilec.api.options import EXTERNAL_FOLDER, SessionOptions
from tilec.api.request import Request, SizeRange
from tilec.api.values import plain
from tilec.artifact import (
    decode,
    digest_bytes,
    digest_object,
    encode,
    locked,
    pretty,
    remove_leftovers,
    tools,
    unwritable,
    write_bytes,
)
from tilec.errors import ConfigError, TilecError, UsageError, did_you_mean, unreadable

NO_RANGES: Mapping[str, SizeRange] = MappingProxyType({})

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


@dataclass(frozen=True)
class Opened:
    """A model file, its digest, those of the external files beside it, all empty where they are not known yet, and
    what it says of itself."""

    path: Path
    sha256: str
    weights: Mapping[str, str]
    header: Header


def open_unread(source: Source, options: SessionOptions, cache: Cache) -> Opened | None:
    """The model that a session is given by path, without reading all of its files: without digests where these are not
    remembered; None where that cannot be. Raises as `open_model` does."""
    if options.given_initializers() or not isinstance(source, str | os.PathLike) or not Path(source).is_file():
        return None
    path = Path(source)
    sha256 = cache.known_digest(path)
    header = read_header(path) if sha256 is None else _header(path, sha256, cache)
    weights = {name: cache.known_digest(_beside(path, name)) or "" for name in header.external}
    if sha256 is None or "" in weights.values():
        return Opened(path, "", dict.fromkeys(weights, ""), header)
    return Opened(path, sha256, weights, header)


def identified(request: Request, held: tuple[HeldFile, ...] = ()) -> Request:
    """The request with the digests of its files, which are those that are held since the session was opened. Where they
    are no longer in their places, or these are a folder of temporary files, the cache has a copy.

    Raises as `open_model` does; UsageError where a file was written since.
    """
    if request.sha256:
        return request
    for file in held:
        file.require_unchanged()
    if held and not all(file.in_place for file in held):
        digests = {file.name: file.digest() for file in held}
        copy = _copied(digests, held, Cache(Path(request.cache)))
        sha256 = digests.pop("")
        return replace(request, model=str(copy), sha256=sha256, weights=digests)
    opened = open_file(Path(request.model), Path(request.cache))
    if held and _is_temporary(opened.path):
        with suppress(TilecError):  # a full cache: it is compiled while it is there
            _copied({"": opened.sha256, **opened.weights}, held, Cache(Path(request.cache)))
    for file in held:
        file.require_unchanged()
    return replace(request, sha256=opened.sha256, weights=opened.weights)


def present(request: Request) -> Request:
    """The request about the cache's copy of its model, where there is one and the model's own file is gone."""
    if not Path(request.model).is_file():
        copy = _copy(request.sha256, request.weights, Cache(Path(request.cache)))
        if copy.is_file():
            return replace(request, model=str(copy.absolute()))
    return request


def open_model(source: Source, options: SessionOptions, cache: Cache) -> Opened:
    """The model that a session is given; bytes are written into the cache.

    Raises UsageError for what cannot be read or is neither path nor bytes, ConfigError for what is no sound model.
    """
    given = options.given_initializers()
    if isinstance(source, bytes | bytearray | memoryview):
        beside = Path(options.entry(EXTERNAL_FOLDER) or ".")
        return _written(_replaced(bytes(source), given, "the model") if given else bytes(source), beside, cache)
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"a model is a path or bytes, this is a {type(source).__name__}")
    path = Path(source)
    if given:
        return _written(_replaced(_bytes_of(path), given, path.name), path.parent, cache)
    return _opened(path, cache)


def open_file(path: Path, cache: Path) -> Opened:
    """A model file as it is; what is found out about it is kept in the cache with the root `cache`.

    Raises UsageError and ConfigError as `open_model` does.
    """
    return _opened(path, Cache(cache))


def request_for(
    model: Opened,
    device: str,
    recipe: str | None,
    sizes: Mapping[str, int],
    cache: Path,
    ranges: Mapping[str, SizeRange] = NO_RANGES,
) -> Request:
    """The request to compile a model for these sizes, those in these ranges and any other ones."""
    path = str(model.path.absolute())
    return Request(path, model.sha256, device, str(cache), recipe, model.weights, dict(sizes), dict(ranges))


def with_inputs(model: Opened, names: Collection[str], cache: Cache) -> Opened:
    """The model with the initializers `names`, which are inputs too, as inputs that must be fed."""
    import onnx

    proto = onnx.ModelProto.FromString(model.path.read_bytes())
    kept = [tensor for tensor in proto.graph.initializer if tensor.name not in names]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return _written(proto.SerializeToString(), model.path.parent, cache)


def with_values(model: Opened, values: Mapping[str, bool], cache: Cache) -> Opened:
    """The model in which these inputs of one bool are constants."""
    import numpy as np
    import onnx

    from tilec.importer.specialise import chosen

    proto = onnx.ModelProto.FromString(model.path.read_bytes())
    ranks = {port.name: len(port.shape or ()) for port in model.header.inputs}
    constants = {name: np.full((1,) * ranks[name], value) for name, value in values.items()}
    return _written(chosen(proto, constants).SerializeToString(), model.path.parent, cache)


def _opened(path: Path, cache: Cache) -> Opened:
    if not path.is_file():
        from tilec.importer.loader import load_structure

        load_structure(path)  # says best what is wrong
    sha256 = cache.digest(path)
    header = _header(path, sha256, cache)
    return Opened(path, sha256, {name: cache.digest(_beside(path, name)) for name in header.external}, header)


def _header(path: Path, sha256: str, cache: Cache) -> Header:
    """The model's header, from the cache or read now."""
    note = cache.model(sha256) / f"header-{digest_object(tools())[:16]}.json"
    try:
        return decode(Header, json.loads(note.read_text(encoding="utf-8")), str(note))
    except (OSError, ValueError, TilecError):
        header = read_header(path)
    cache.keep(note, pretty(encode(header)))
    return header


def _beside(model: Path, name: str) -> Path:
    """An external file. Raises ConfigError for one outside of the model's folder, before anything of it is read."""
    parts = PurePosixPath(name.replace("\\", "/"))
    inside = model.parent / parts
    if parts.is_absolute() or ".." in parts.parts or not inside.resolve().is_relative_to(model.parent.resolve()):
        hint = "Keep external data beside the model and save the model again."
        raise ConfigError(f"external data {name!r} lies outside the model's folder", model.name, hint)
    return inside


def _written(data: bytes, beside: Path, cache: Cache) -> Opened:
    """A model given as bytes, in a file of the cache, with its external files, which are in folder `beside`."""
    place = cache if cache.writable else Cache(Path(temporary_cache()))
    sha256 = digest_bytes(data)
    path = place.model(sha256) / "model.onnx"
    if not path.is_file():
        write_bytes(path, data)
    used(path.parent)
    header = _header(path, sha256, place)
    if not header.external:
        return Opened(path, sha256, {}, header)
    weights = {name: cache.digest(_beside(beside / "model.onnx", name)) for name in header.external}
    path = _copy(sha256, weights, place)
    folder = path.parent
    if not path.is_file():
        write_bytes(path, data)
    used(folder)
    for name, digest in weights.items():
        _bring(beside / name, folder / name, digest, cache)
    return Opened(path, sha256, weights, header)


def _copy(sha256: str, weights: Mapping[str, str], cache: Cache) -> Path:
    """Where a model with these digests lies in the cache with its external files, if it does."""
    return cache.model(digest_object({"model": sha256, "weights": weights}) if weights else sha256) / "model.onnx"


def _copied(digests: Mapping[str, str], held: tuple[HeldFile, ...], cache: Cache) -> Path:
    """The copy in the cache of files with these digests by name; where that cannot be written, in a folder of this
    process. Raises TilecError."""
    place = cache if cache.writable else Cache(Path(temporary_cache()))
    copy = _copy(digests[""], {name: digest for name, digest in digests.items() if name}, place)
    try:
        with locked(copy.parent / "copy.lock"):
            remove_leftovers(copy.parent)  # of a program that ended while it copied
            for file in sorted(held, key=lambda file: file.name, reverse=True):  # the model last: then all are there
                file.copy(copy.parent / file.name if file.name else copy)
    except OSError as error:
        raise unwritable(error, copy) from error
    used(copy.parent)
    return copy


def _is_temporary(path: Path) -> bool:
    """Whether a file lies in the folder of temporary files, where it may not be for long."""
    from tempfile import gettempdir

    return path.resolve().is_relative_to(Path(gettempdir()).resolve())


def _bring(real: Path, here: Path, sha256: str, cache: Cache) -> None:
    """Put a file, or a copy, at `here`; a link would lead out of the model's folder, where import reads nothing."""
    if here.is_file() and cache.digest(here) == sha256:
        return
    aside = here.with_name(f".{here.name}.{os.getpid()}.tmp")
    try:
        here.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(real.resolve(), aside)
        except OSError:
            from shutil import copyfile

            copyfile(real, aside)
        os.replace(aside, here)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise TilecError(f"cannot copy {here.name}: {error.strerror}", str(here.parent)) from error


def _replaced(data: bytes, given: Mapping[str, Any], place: str) -> bytes:
    """The model with other values for some initializers. Raises UsageError for a name that it does not have."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import numpy_helper

    try:
        proto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ConfigError("this is not an ONNX model", place) from error
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    for name, value in given.items():
        if name not in tensors:
            near = did_you_mean(name, tensors)
            raise UsageError(f"no initializer is called {name!r}", place, f"Did you mean {near!r}?" if near else None)
        tensors[name].CopyFrom(numpy_helper.from_array(plain(value), name))
    changed: bytes = proto.SerializeToString()
    return changed


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error, str(path)) from error
