"""Small random configurations of transformers' causal models and decoders. Imported where PyTorch is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as hf

VOCABULARY = 320

WINDOW = 32
"""Tokens of a sliding window: prompts of the sweep are shorter and longer."""

_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}
_HEAD: dict[str, Any] = {"head_dim": 16}
_TIED: dict[str, Any] = {"tie_word_embeddings": True}
_SLIDING: dict[str, Any] = {"sliding_window": WINDOW}
_GEMMA: dict[str, Any] = {**_HEAD, **_TIED, **_SLIDING, "query_pre_attn_scalar": 16}


def _made(cls: Any, config: Any, **more: Any) -> Callable[[], Any]:
    return lambda: cls(config(**{**_SIZES, **more}))


FAMILIES: Mapping[str, Callable[[], Any]] = {
    "llama": _made(hf.LlamaForCausalLM, hf.LlamaConfig),
    "qwen2": _made(hf.Qwen2ForCausalLM, hf.Qwen2Config),
    "qwen3": _made(hf.Qwen3ForCausalLM, hf.Qwen3Config, **_HEAD, **_TIED),
    "mistral": _made(hf.MistralForCausalLM, hf.MistralConfig, **_SLIDING),
    "phi": _made(hf.PhiForCausalLM, hf.PhiConfig),
    "phi3": _made(hf.Phi3ForCausalLM, hf.Phi3Config, pad_token_id=0, original_max_position_embeddings=1024),
    "gemma2": _made(hf.Gemma2ForCausalLM, hf.Gemma2Config, **_GEMMA),
    "gemma3": _made(
        hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, layer_types=["sliding_attention", "full_attention"], **_GEMMA
    ),
    "olmo": _made(hf.OlmoForCausalLM, hf.OlmoConfig),
    "smollm3": _made(hf.SmolLM3ForCausalLM, hf.SmolLM3Config, pad_token_id=0),
    "gpt-oss": _made(
        hf.GptOssForCausalLM, hf.GptOssConfig, num_local_experts=4, num_experts_per_tok=2, **_HEAD, **_SLIDING
    ),
    "mixtral": _made(hf.MixtralForCausalLM, hf.MixtralConfig, num_local_experts=4, num_experts_per_tok=2),
    "qwen3-moe": _made(
        hf.Qwen3MoeForCausalLM,
        hf.Qwen3MoeConfig,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        **_HEAD,
    ),
}
"""Causal models by name."""

_ENCODER: dict[str, Any] = {"d_model": 64, "vocab_size": VOCABULARY, "pad_token_id": 0, "decoder_start_token_id": 1}

DECODERS: Mapping[str, Callable[[], Any]] = {
    "whisper": lambda: hf.WhisperForConditionalGeneration(
        hf.WhisperConfig(
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=96,
            decoder_ffn_dim=96,
            max_target_positions=1024,
            bos_token_id=1,
            eos_token_id=2,
            **_ENCODER,
        )
    ),
    "t5": lambda: hf.T5ForConditionalGeneration(
        hf.T5Config(
            num_layers=1, num_decoder_layers=2, num_heads=4, d_kv=16, d_ff=96, attn_implementation="eager", **_ENCODER
        )
    ),
}
"""Models with an encoder, whose decoder has caches of its own tokens and of the encoder's."""


def causal_model(name: str) -> Any:
    """The model of a family with random weights, the same at every call."""
    torch.manual_seed(0)
    model = FAMILIES[name]().eval()
    model.set_experts_implementation("batched_mm")  # the others cannot be exported
    model.generation_config = hf.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return model


def with_encoder(name: str) -> Any:
    """The model of `DECODERS` with random weights, the same at every call."""
    torch.manual_seed(0)
    return DECODERS[name]().eval()
