"""Causal models as `torch.onnx.export(dynamo=True)` writes them, with growing and with fixed caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import Cache, StaticLayer

from tests.language_models.families import causal_model, with_encoder

SIDES = ("decoder", "encoder")

CAPACITY = 640
"""Rows of fixed caches: the longest prompt and all steps."""


class Growing(nn.Module):
    """A model that takes the caches of earlier tokens and returns those of all."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor) -> Any:
        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        found = self.model(
            input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True
        )
        return found.logits, *_tensors(cache)


class Fixed(nn.Module):
    """A model that writes the new rows into caches with room for all tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, cache_position: Tensor, *past: Tensor) -> Any:
        cache = Cache(layers=[_layer(*pair, cache_position) for pair in zip(past[::2], past[1::2], strict=True)])
        found = self.model(input_ids, position_ids=cache_position[None], past_key_values=cache, use_cache=True)
        return found.logits, *_tensors(cache)


def _layer(keys: Tensor, values: Tensor, places: Tensor) -> StaticLayer:
    layer = StaticLayer(keys.shape[2])
    layer.keys, layer.values, layer.is_initialized = keys.clone(), values.clone(), True
    layer.device = keys.device
    layer.cumulative_length = places[0].clone()
    return layer


def _tensors(cache: Cache) -> list[Tensor]:
    return [each for layer in cache.layers for each in (layer.keys, layer.values)]


class Crossing(nn.Module):
    """The decoder of a model with an encoder, whose keys and values for it are inputs, and its caches."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids: Tensor, *past: Tensor) -> Any:
        own, encoded = (DynamicCache([past[n : n + 2] for n in range(at, len(past), 4)]) for at in (0, 2))
        cache = EncoderDecoderCache(own, encoded)
        unread = torch.zeros(decoder_input_ids.shape[0], past[2].shape[2], self.model.config.d_model)
        decoder = self.model.get_decoder()
        found = decoder(decoder_input_ids, encoder_hidden_states=unread, past_key_values=cache, use_cache=True)
        head = self.model.get_output_embeddings()
        return head(found.last_hidden_state), *_tensors(own)


def export_decoder(family: str, opset: int, folder: Path) -> None:
    """Write the decoder of a model with an encoder, and how it is fed, into a folder."""
    model = with_encoder(family)
    batch, new, earlier, encoded = 2, 3, 5, 7
    layers = getattr(model.config, "decoder_layers", None) or model.config.num_decoder_layers
    sides = [f"{layer}.{side}.{part}" for layer in range(layers) for side in SIDES for part in ("key", "value")]
    past = [f"past_key_values.{each}" for each in sides]
    rows = [encoded if "encoder" in each else earlier for each in sides]
    tensors = [torch.randn(batch, 4, n, 16) for n in rows]
    auto = torch.export.Dim.DYNAMIC
    program = torch.onnx.export(
        Crossing(model),
        (torch.ones(batch, new, dtype=torch.long), *tensors),
        input_names=["decoder_input_ids", *past],
        output_names=["logits", *(f"present.{each}" for each in sides if "decoder" in each)],
        dynamic_shapes=({0: auto, 1: auto}, tuple({0: auto, 2: auto} for _ in past)),
        dynamo=True,
        opset_version=opset,
    )
    assert program is not None
    folder.mkdir(parents=True, exist_ok=True)
    program.save(str(folder / "model.onnx"))
    given = {name: each[:1].numpy() for name, each in zip(past, tensors, strict=True) if "encoder" in name}
    np.savez(folder / "given.npz", **given)
    (folder / "form.json").write_text(json.dumps({"padded": "left", "given": True}))


def export(family: str, fixed: bool, opset: int, folder: Path) -> None:
    """Write the model of a family, and how it is fed, into a folder."""
    model = causal_model(family)
    config = model.config
    heads = config.num_key_value_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    batch, new, earlier = 2, 3, 5
    parts = [f"{layer}.{part}" for layer in range(config.num_hidden_layers) for part in ("key", "value")]
    past, present = ([f"{kind}.{part}" for part in parts] for kind in ("past_key_values", "present"))
    rows = CAPACITY if fixed else earlier
    tensors = [torch.zeros(batch, heads, rows, head) for _ in past]
    ids = torch.ones(batch, new, dtype=torch.long)
    auto = torch.export.Dim.DYNAMIC
    if fixed:
        feeds: tuple[Tensor, ...] = (ids, torch.arange(earlier, earlier + new))
        names, axes = ["input_ids", "cache_position"], [{0: auto, 1: auto}, {0: auto}]
    else:
        mask = torch.ones(batch, earlier + new, dtype=torch.long)
        feeds = (ids, mask, torch.arange(earlier, earlier + new).expand(batch, new).contiguous())
        names, axes = ["input_ids", "attention_mask", "position_ids"], [{0: auto, 1: auto}] * 3
    shapes = (*axes, tuple({0: auto} if fixed else {0: auto, 2: auto} for _ in past))
    program = torch.onnx.export(
        Fixed(model) if fixed else Growing(model),
        (*feeds, *tensors),
        input_names=[*names, *past],
        output_names=["logits", *present],
        dynamic_shapes=shapes,
        dynamo=True,
        opset_version=opset,
    )
    assert program is not None
    folder.mkdir(parents=True, exist_ok=True)
    program.save(str(folder / "model.onnx"))
    said = {"padded": "left", "capacity": CAPACITY if fixed else 0}
    (folder / "form.json").write_text(json.dumps(said))
