"""Language models of transformers: decoders with caches, experts, state spaces, encoders and decoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn

from tests.torch_models.case import Call, Case

VOCABULARY = 99
_DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length))


def _plain(_model: nn.Module) -> list[Call]:
    return [((_ids(2, length),), {}) for length in (7, 12, 7)]


def _prompts(_model: nn.Module) -> list[Call]:
    return [((), {"input_ids": _ids(2, length), "use_cache": False}) for length in (7, 12, 7)]


def _decoder(
    name: str, model: Any, config: Any, calls: Callable[[nn.Module], list[Call]] = _prompts, **more: Any
) -> Case:
    return Case(name, "transformers", lambda: model(config(**(_DECODER | more))), calls)


def _plain_case(name: str, model: Any, config: Any, calls: Callable[[nn.Module], list[Call]], **sizes: Any) -> Case:
    return Case(name, "transformers", lambda: model(config(vocab_size=VOCABULARY, **sizes)), calls)


def _steps(cache: Callable[[Any], Any], start: int = 5, steps: int = 3) -> Callable[[nn.Module], list[Call]]:
    """A prompt and single tokens after it, each with the cache of the eager model up to there."""

    def calls(model: nn.Module) -> list[Call]:
        found: list[Call] = []
        for length in (0, *range(start, start + steps)):
            held, width = cache(model), 1 if length else start
            if length:
                with torch.no_grad():
                    model(input_ids=_ids(2, length), past_key_values=held, use_cache=True)
            found.append(((), {"input_ids": _ids(2, width), "past_key_values": held, "use_cache": True}))
        return found

    return calls


def _dynamic(model: Any) -> Any:
    return hf.DynamicCache(config=model.config)


def _static(model: Any) -> Any:
    return hf.StaticCache(config=model.config, max_cache_len=16)


def _whisper() -> nn.Module:
    parts: dict[str, Any] = {}
    for part in ("encoder", "decoder"):
        parts |= {f"{part}_layers": 2, f"{part}_attention_heads": 4, f"{part}_ffn_dim": 64}
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=20, d_model=32, max_source_positions=50, max_target_positions=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **parts,
    )  # fmt: skip
    return hf.WhisperForConditionalGeneration(config)


def _transcribe(model: Any) -> list[Call]:
    """The encoder's work and a first token, then tokens with the cache."""
    features, found = torch.randn(2, 20, 100), list[Call]()
    found.append(((), {"input_features": features, "decoder_input_ids": _ids(2, 4), "use_cache": True}))
    with torch.no_grad():
        encoded = model.model.encoder(features)
        for length in (4, 5):
            held = hf.EncoderDecoderCache(_dynamic(model), _dynamic(model))
            model(encoder_outputs=encoded, decoder_input_ids=_ids(2, length), past_key_values=held, use_cache=True)
            found.append(
                (
                    (),
                    {
                        "encoder_outputs": encoded,
                        "decoder_input_ids": _ids(2, 1),
                        "past_key_values": held,
                        "use_cache": True,
                    },
                )
            )
    return found


_EXPERTS: dict[str, Any] = {"num_local_experts": 4, "num_experts_per_tok": 2}
_QWEN: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_MAMBA2: dict[str, Any] = {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1, "chunk_size": 8}
_FALCON: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}

CASES = (
    _decoder("llama-dynamic-cache", hf.LlamaForCausalLM, hf.LlamaConfig, _steps(_dynamic)),
    _decoder("llama-static-cache", hf.LlamaForCausalLM, hf.LlamaConfig, _steps(_static)),
    _decoder("gemma2", hf.Gemma2ForCausalLM, hf.Gemma2Config, sliding_window=4),
    _decoder("gemma3", hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, sliding_window=4),
    _decoder("phi3", hf.Phi3ForCausalLM, hf.Phi3Config),
    _decoder("granite", hf.GraniteForCausalLM, hf.GraniteConfig),
    _plain_case("falcon", hf.FalconForCausalLM, hf.FalconConfig, _prompts, **_FALCON),
    _decoder("bloom", hf.BloomForCausalLM, hf.BloomConfig, n_head=4, n_layer=2),
    _decoder("mixtral", hf.MixtralForCausalLM, hf.MixtralConfig, **_EXPERTS),
    _decoder(
        "qwen3-moe",
        hf.Qwen3MoeForCausalLM,
        hf.Qwen3MoeConfig,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
    ),
    _decoder("gpt-oss", hf.GptOssForCausalLM, hf.GptOssConfig, **_EXPERTS),
    _decoder("mamba", hf.MambaForCausalLM, hf.MambaConfig, state_size=8),
    _decoder("mamba2", hf.Mamba2ForCausalLM, hf.Mamba2Config, **_MAMBA2),
    _decoder("fnet", hf.FNetModel, hf.FNetConfig, _plain),
    Case("whisper", "transformers", _whisper, _transcribe),
)
