"""What `genai_config.json` says of a decoder: the file that onnxruntime-genai's model builder writes beside a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.errors import ConfigError, UsageError, unreadable

FILE = "genai_config.json"


@dataclass(frozen=True, slots=True)
class GenaiConfig:
    """The model's file, the tokens that end a text, and the longest text; names of inputs and outputs by their role,
    those of caches as patterns (`past_key_values.%d.key`); `window` is the room of caches that hold the latest tokens
    alone, 0 where there are none."""

    model: Path
    stops: tuple[int, ...]
    longest: int | None
    inputs: dict[str, str]
    outputs: dict[str, str]
    layers: int
    window: int = 0


def read_genai_config(folder: Path) -> GenaiConfig:
    """The configuration in a folder. Raises UsageError where there is none, ConfigError for one that is malformed."""
    path = folder / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "Name a folder of onnxruntime-genai's model builder, an ONNX file, or a compiled model."
        raise UsageError(f"there is no {FILE} in this folder", str(folder), hint) from error
    except OSError as error:
        raise unreadable(error, str(path)) from error
    except ValueError as error:
        raise ConfigError(f"this is no JSON: {error}", str(path), "Export the model again.") from error
    model = _object(data, "model", path)
    decoder = _object(model, "decoder", path, "model.")
    stops = model.get("eos_token_id", [])
    stops = [stops] if isinstance(stops, int) else stops
    if not isinstance(stops, list) or not all(isinstance(each, int) for each in stops):
        raise ConfigError("model.eos_token_id is no token", str(path), "Write an integer or a list of integers.")
    longest, layers, file = model.get("context_length"), decoder.get("num_hidden_layers", 0), decoder.get("filename")
    if not isinstance(file, str):
        raise ConfigError("model.decoder.filename is missing", str(path), "Write the name of the ONNX file there.")
    return GenaiConfig(
        folder / file,
        tuple(stops),
        longest if isinstance(longest, int) and longest > 0 else None,
        _names(decoder, "inputs"),
        _names(decoder, "outputs"),
        layers if isinstance(layers, int) else 0,
        _window(decoder),
    )


def _object(data: Any, key: str, path: Path, before: str = "") -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, dict):
        raise ConfigError(f"{before}{key} is missing", str(path), "Export the model again.")
    return value


def _window(decoder: dict[str, Any]) -> int:
    sliding = decoder.get("sliding_window")
    size = sliding.get("window_size") if isinstance(sliding, dict) else None
    return size if isinstance(size, int) and size > 0 else 0


def _names(decoder: dict[str, Any], key: str) -> dict[str, str]:
    names = decoder.get(key)
    return {k: v for k, v in names.items() if isinstance(v, str)} if isinstance(names, dict) else {}
