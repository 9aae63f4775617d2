"""Models of transformers, timm, torchvision and plain PyTorch: small random configurations and what they are fed.

Imported in the environment of the exports only, where PyTorch and these packages are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import timm
import torch
import torchvision
import transformers as hf
from torch import Tensor, nn

Sizes = Mapping[str, int]
Feeds = dict[str, Tensor]

VOCABULARY = 99

_EAGER: dict[str, Any] = {"attn_implementation": "eager"}
"""Attention as products and softmax, for models whose export with `scaled_dot_product_attention` fails in PyTorch."""

TEXT = ({"batch": 1, "length": 7}, {"batch": 2, "length": 16}, {"batch": 3, "length": 33}, {"batch": 5, "length": 2})
IMAGE = tuple({"batch": batch} for batch in (1, 2, 3, 5))
FIELD = (
    {"batch": 1, "height": 64, "width": 64},
    {"batch": 2, "height": 64, "width": 96},
    {"batch": 3, "height": 96, "width": 64},
    {"batch": 1, "height": 128, "width": 160},
)
SOUND = tuple({"batch": batch, "length": length} for batch, length in ((1, 900), (2, 1600), (3, 1235), (1, 2000)))


@dataclass(frozen=True, slots=True)
class Export:
    """A model: how it is made, its feeds at given sizes, open axes of each feed, four sets of sizes, the exporter."""

    name: str
    build: Callable[[], nn.Module]
    feeds: Callable[[Sizes], Feeds]
    axes: Mapping[str, Mapping[int, str]]
    sizes: tuple[Sizes, ...]
    exporter: str = "dynamo"


class Outputs(nn.Module):
    """A model of transformers that takes tensors by name and returns those outputs that are tensors."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *feeds: Tensor) -> tuple[Tensor, ...]:
        found = self.model(**dict(zip(self.names, feeds, strict=True)))
        return tuple(each for each in found.to_tuple() if isinstance(each, Tensor))


class MeanPooled(nn.Module):
    """Sentence embeddings: the mean of the tokens that the mask keeps, of length 1."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=-1)


class LastToken(nn.Module):
    """Logits of the last token only, as a decoder's loop wants them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits[:, -1]


class Crnn(nn.Module):
    """A reader of text lines: convolutions, a bidirectional LSTM over the columns, a class for each."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d((4, 1)),
        )  # fmt: skip
        self.recurrence = nn.LSTM(32 * 4, 32, bidirectional=True, batch_first=True)
        self.classes = nn.Linear(64, 40)

    def forward(self, image: Tensor) -> Tensor:
        columns = self.convolutions(image).permute(0, 3, 1, 2).flatten(2)
        return self.classes(self.recurrence(columns)[0]).log_softmax(-1)


class Tagger(nn.Module):
    """A segmenter of text: embedding, GRU in both directions, a class for each character."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        self.recurrence = nn.GRU(32, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.classes = nn.Linear(48, 4)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.classes(self.recurrence(self.embedding(input_ids))[0]).softmax(-1)


class Unet(nn.Module):
    """A segmenter of images of any size: down, up to the size of the skip connection, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.up, self.last = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(32, 2, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        first = self.first(image).relu()
        up = self.up(self.down(first).relu())
        up = nn.functional.interpolate(up, size=first.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(torch.cat([first, up], 1)).sigmoid()


class VoiceDetector(nn.Module):
    """Voice activity of one chunk of sound, with the state of an LSTM handed from chunk to chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(1, 34, 64, stride=32)
        self.cell = nn.LSTM(17, 32, batch_first=True)
        self.verdict = nn.Linear(32, 1)

    def forward(self, sound: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        padded = nn.functional.pad(sound.unsqueeze(1), (32, 32), mode="reflect")
        real, imaginary = self.filters(padded).chunk(2, 1)
        magnitude = (real**2 + imaginary**2).sqrt().transpose(1, 2)
        steps, (state, memory) = self.cell(magnitude, (state, memory))
        return self.verdict(steps.relu()).sigmoid().mean(1), state, memory


def _text(*names: str) -> Callable[[Sizes], Feeds]:
    def feeds(sizes: Sizes) -> Feeds:
        shape = (sizes["batch"], sizes["length"])
        mask = torch.ones(shape, dtype=torch.int64)
        for row in range(shape[0]):
            mask[row, max(1, shape[1] - row) :] = 0
        made = {"attention_mask": mask, "token_type_ids": torch.randint(0, 2, shape)}
        return {name: made.get(name, torch.randint(3, VOCABULARY, shape)) for name in names}

    return feeds


def _of_text(
    name: str, build: Callable[[], nn.Module], *names: str, exporter: str = "dynamo", bare: bool = False
) -> Export:
    names = names or ("input_ids", "attention_mask")
    made = build if bare else lambda: Outputs(build(), names)
    axes = {each: {0: "batch", 1: "length"} for each in names}
    return Export(name, made, _text(*names), axes, TEXT, exporter)


def _of_images(name: str, build: Callable[[], nn.Module], side: int = 64, exporter: str = "dynamo") -> Export:
    def feeds(sizes: Sizes) -> Feeds:
        return {"image": torch.randn(sizes["batch"], 3, side, side)}

    return Export(name, build, feeds, {"image": {0: "batch"}}, IMAGE, exporter)


def _of_fields(name: str, build: Callable[[], nn.Module], exporter: str = "dynamo") -> Export:
    def feeds(sizes: Sizes) -> Feeds:
        return {"image": torch.randn(sizes["batch"], 3, sizes["height"], sizes["width"])}

    return Export(name, build, feeds, {"image": {0: "batch", 2: "height", 3: "width"}}, FIELD, exporter)


def _of_sound(name: str, build: Callable[[], nn.Module]) -> Export:
    def feeds(sizes: Sizes) -> Feeds:
        return {"input_values": torch.randn(sizes["batch"], sizes["length"])}

    return Export(name, build, feeds, {"input_values": {0: "batch", 1: "length"}}, SOUND)


def _bert(cls: Any, config: Any, **more: Any) -> Callable[[], nn.Module]:
    sizes = {
        "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 64,
    }  # fmt: skip
    return lambda: cls(config(**(sizes | more)))


def _gpt2() -> nn.Module:
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64))


def _llama(cls: Any, config: Any, **more: Any) -> Callable[[], nn.Module]:
    return _bert(cls, config, num_key_value_heads=2, head_dim=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, **more)


def _t5(cls: Any) -> Callable[[], nn.Module]:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    return lambda: cls(hf.T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, use_cache=False, **sizes, **_EAGER))


def _bart(cls: Any, config: Any, **more: Any) -> Callable[[], nn.Module]:
    sizes: dict[str, Any] = {"d_model": 32, "max_position_embeddings": 80, "use_cache": False}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": 2, f"{part}_attention_heads": 4, f"{part}_ffn_dim": 64}
    return lambda: cls(config(vocab_size=VOCABULARY, **(sizes | more)))


def _whisper() -> nn.Module:
    sizes = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 64}
    sizes |= {"decoder_attention_heads": 4, "decoder_layers": 1, "decoder_ffn_dim": 64}
    config = hf.WhisperConfig(num_mel_bins=20, max_source_positions=50, vocab_size=VOCABULARY, pad_token_id=0, **sizes)
    return Outputs(hf.WhisperModel(config).encoder, ("input_features",))


def _of_features(name: str, build: Callable[[], nn.Module]) -> Export:
    def feeds(sizes: Sizes) -> Feeds:
        return {"input_features": torch.randn(sizes["batch"], 20, 100)}

    return Export(name, build, feeds, {"input_features": {0: "batch"}}, IMAGE)


def _clip(cls: Any, config: Any, names: tuple[str, ...], **more: Any) -> Callable[[], nn.Module]:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return lambda: Outputs(cls(config(projection_dim=16, **(sizes | more))), names)


def _vision(cls: Any, config: Any, **more: Any) -> Callable[[], nn.Module]:
    return lambda: Outputs(cls(config(**more)), ("pixel_values",))


def _wav2vec2(cls: Any, config: Any) -> Callable[[], nn.Module]:
    sizes = {
        "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "conv_dim": (16, 16, 16), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_feat_extract_layers": 3,
        "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "apply_spec_augment": False,
    }  # fmt: skip
    return lambda: Outputs(cls(config(**sizes)), ("input_values",))


def _timm(name: str, **more: Any) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, pretrained=False, num_classes=10, **more)


def _resnet() -> nn.Module:
    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10)


def _chunks(sizes: Sizes) -> Feeds:
    state = (1, sizes["batch"], 32)
    return {
        "sound": torch.randn(sizes["batch"], sizes["length"]),
        "state": torch.randn(state),
        "memory": torch.zeros(state),
    }


def _lines(sizes: Sizes) -> Feeds:
    return {"image": torch.randn(sizes["batch"], 1, 32, sizes["length"])}


_VIT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 64,
    "patch_size": 16,
}  # fmt: skip
_IDS = "input_ids"
_MASKED = ("input_ids", "attention_mask")
_LINES = tuple({"batch": batch, "length": length} for batch, length in ((1, 40), (2, 100), (3, 64), (1, 320)))
_STATE = {"sound": {0: "batch", 1: "length"}, "state": {1: "batch"}, "memory": {1: "batch"}}
_TV = torchvision.models

EXPORTS = (
    _of_text("bert", _bert(hf.BertModel, hf.BertConfig), "input_ids", "attention_mask", "token_type_ids"),
    _of_text("bert-tokens", _bert(hf.BertForTokenClassification, hf.BertConfig)),
    _of_text("minilm", lambda: MeanPooled(_bert(hf.BertModel, hf.BertConfig)()), bare=True),
    _of_text(
        "distilbert",
        lambda: hf.DistilBertModel(
            hf.DistilBertConfig(
                vocab_size=VOCABULARY, max_position_embeddings=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64
            )
        ),
    ),
    _of_text("albert", _bert(hf.AlbertModel, hf.AlbertConfig, embedding_size=16)),
    _of_text("roberta", _bert(hf.RobertaModel, hf.RobertaConfig)),
    _of_text("electra", _bert(hf.ElectraModel, hf.ElectraConfig, embedding_size=16)),
    _of_text("mpnet", _bert(hf.MPNetModel, hf.MPNetConfig)),
    _of_text(
        "deberta",
        _bert(
            hf.DebertaV2Model,
            hf.DebertaV2Config,
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
            position_buckets=8,
        ),
    ),
    _of_text(
        "modernbert",
        _bert(hf.ModernBertModel, hf.ModernBertConfig, pad_token_id=0, local_attention=8, **_EAGER),
    ),
    _of_text("gpt2", _gpt2),
    _of_text("gpt2-last", lambda: LastToken(_gpt2()), bare=True),
    _of_text("llama", _llama(hf.LlamaForCausalLM, hf.LlamaConfig, use_cache=False)),
    _of_text("qwen2", _llama(hf.Qwen2ForCausalLM, hf.Qwen2Config, use_cache=False)),
    _of_text("qwen3", _llama(hf.Qwen3ForCausalLM, hf.Qwen3Config, use_cache=False)),
    _of_text("mistral", _llama(hf.MistralForCausalLM, hf.MistralConfig, use_cache=False, sliding_window=8)),
    _of_text(
        "opt",
        lambda: hf.OPTForCausalLM(
            hf.OPTConfig(
                vocab_size=VOCABULARY,
                hidden_size=32,
                num_hidden_layers=2,
                ffn_dim=64,
                num_attention_heads=4,
                max_position_embeddings=64,
                word_embed_proj_dim=32,
                use_cache=False,
            )
        ),
    ),
    _of_text("t5-encoder", _t5(hf.T5EncoderModel)),
    _of_text("t5", _t5(hf.T5Model), "input_ids", "attention_mask", "decoder_input_ids"),
    _of_text("bart", _bart(hf.BartModel, hf.BartConfig), "input_ids", "attention_mask", "decoder_input_ids"),
    _of_text(
        "clip-text",
        lambda: _clip(
            hf.CLIPTextModelWithProjection,
            hf.CLIPTextConfig,
            _MASKED,
            vocab_size=VOCABULARY,
            max_position_embeddings=64,
        )(),
        bare=True,
    ),
    _of_images(
        "clip-vision",
        _clip(hf.CLIPVisionModelWithProjection, hf.CLIPVisionConfig, ("pixel_values",), image_size=64, patch_size=16),
    ),
    _of_images("vit", _vision(hf.ViTModel, hf.ViTConfig, **_VIT)),
    _of_fields(
        "vit-any-size",
        lambda: timm.create_model("test_vit", pretrained=False, num_classes=10, img_size=64, dynamic_img_size=True),
    ),
    _of_images(
        "swin",
        _vision(
            hf.SwinModel,
            hf.SwinConfig,
            image_size=64,
            patch_size=4,
            embed_dim=16,
            depths=[1, 2],
            num_heads=[2, 4],
            window_size=4,
            **_EAGER,
        ),
    ),
    _of_fields(
        "segformer",
        _vision(
            hf.SegformerForSemanticSegmentation,
            hf.SegformerConfig,
            hidden_sizes=[8, 16, 16, 32],
            depths=[1, 1, 1, 1],
            decoder_hidden_size=16,
            num_attention_heads=[1, 2, 2, 4],
        ),
    ),
    _of_fields("convnext", _timm("test_convnext")),
    _of_features("whisper-encoder", _whisper),
    _of_sound("wav2vec2", _wav2vec2(hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config)),
    _of_sound("hubert", _wav2vec2(hf.HubertModel, hf.HubertConfig)),
    _of_fields("resnet", _resnet),
    _of_fields("mobilenet-v2", lambda: _TV.mobilenet_v2(width_mult=0.25, num_classes=10)),
    _of_fields("shufflenet-v2", lambda: _TV.shufflenet_v2_x0_5(num_classes=10)),
    _of_fields("efficientnet", _timm("test_efficientnet")),
    _of_fields("unet", Unet),
    Export("crnn", Crnn, _lines, {"image": {0: "batch", 3: "length"}}, _LINES),
    Export("voice-detector", VoiceDetector, _chunks, _STATE, SOUND),
    _of_text("bert-old", _bert(hf.BertModel, hf.BertConfig, **_EAGER), exporter="torchscript"),
    Export("crnn-old", Crnn, _lines, {"image": {0: "batch", 3: "length"}}, _LINES, "torchscript"),
    Export("voice-detector-old", VoiceDetector, _chunks, _STATE, SOUND, "torchscript"),
    _of_text("tagger-old", Tagger, _IDS, exporter="torchscript", bare=True),
    _of_fields("unet-old", Unet, exporter="torchscript"),
    _of_fields("mobilenet-v2-old", lambda: _TV.mobilenet_v2(width_mult=0.25, num_classes=10), exporter="torchscript"),
    _of_images("vit-old", _timm("test_vit", img_size=64), exporter="torchscript"),
)
