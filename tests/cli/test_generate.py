"""`tilec generate`: a folder with a model, a configuration and a tokenizer; streams, figures, comparisons, refusals."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from language_models.written import CHANNELS, merged
from state_models import GROUPS, HEADS, SIZE, VOCABULARY, decoder

CONFIG = {
    "model": {
        "type": "llama",
        "bos_token_id": 1,
        "pad_token_id": 0,
        "eos_token_id": [23],
        "context_length": 40,
        "vocab_size": VOCABULARY,
        "decoder": {
            "filename": "model.onnx",
            "session_options": {"provider_options": []},
            "head_size": SIZE,
            "hidden_size": SIZE * HEADS,
            "num_attention_heads": HEADS,
            "num_hidden_layers": 1,
            "num_key_value_heads": GROUPS,
            "inputs": {
                "input_ids": "input_ids",
                "attention_mask": "attention_mask",
                "past_key_names": "past_key_values.%d.key",
                "past_value_names": "past_key_values.%d.value",
            },
            "outputs": {
                "logits": "logits",
                "present_key_names": "present.%d.key",
                "present_value_names": "present.%d.value",
            },
        },
    },
    "search": {"max_length": 40, "past_present_share_buffer": True},
}


@pytest.fixture
def folder(cli, tmp_path, monkeypatch):
    """A folder of a decoder, which compiles in few seconds: by rules, for all sizes at once."""
    monkeypatch.setenv("TILEC_SCHEDULE_EFFORT", "quick")
    monkeypatch.setenv("TILEC_SCHEDULE_VARIANTS", "1")
    place = tmp_path / "tiny"
    place.mkdir()
    decoder(place / "model.onnx")
    (place / "genai_config.json").write_text(json.dumps(CONFIG))
    letters = {chr(97 + n): n for n in range(VOCABULARY)}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    tokenizer |= {"pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"}}
    tokenizer["model"] = {"type": "BPE", "vocab": letters, "merges": [], "dropout": None, "unk_token": None}
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    return place


def greedy(model, prompt, tokens):
    """The likeliest tokens by onnxruntime, with caches that grow."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model))
    caches = [np.zeros((1, GROUPS, 0, SIZE), "f4")] * 2
    ids, total, made = prompt, 0, []
    for _ in range(tokens):
        total += len(ids)
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, total), "i8")}
        feeds |= {f"past_key_values.0.{part}": cache for part, cache in zip(("key", "value"), caches, strict=True)}
        logits, *caches = session.run(["logits", "present.0.key", "present.0.value"], feeds)
        ids = [int(logits[0, -1].argmax())]
        made += ids
    return made


def test_tokens_are_streamed_and_figures_told(cli, folder):
    ran = cli("generate", "tiny", "--prompt-ids", "3,1,4", "--tokens", 12, "--stop-ids", VOCABULARY)
    expected = greedy(folder / "model.onnx", [3, 1, 4], 12)
    if 23 in expected:
        expected = expected[: expected.index(23) + 1]
    assert (ran.code, ran.out.split()) == (0, [str(token) for token in expected])
    assert "prefill: 3 tokens" in ran.err
    assert "peak memory" in ran.err
    told = json.loads(cli("generate", "tiny", "--prompt", "dbe", "--tokens", 12, "--json").out)
    assert told["tokens"] == expected
    assert told["text"] == "".join(chr(97 + token) for token in expected)
    assert told["moved_bytes_per_token"] > 0
    text = cli("generate", "tiny", "--prompt", "dbe", "--tokens", 12)
    assert text.out == told["text"] + "\n"
    warm = [cli("generate", "tiny", "--prompt", "dbe", "--temperature", 1, "--seed", seed).out for seed in (1, 1, 2)]
    assert warm[0] == warm[1] != warm[2]


def test_a_merged_decoder_takes_the_branch_that_reads_caches(cli, folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(merged(folder / "merged.onnx")))
    caches = [np.zeros((1, 2, 0, CHANNELS), "f4")] * 2
    ids, total, expected = [3, 1, 4], 0, []
    for _ in range(6):
        feeds = {"input_ids": np.array([ids]), "position_ids": np.arange(total, total + len(ids))[None]}
        feeds |= {f"past_key_values.0.{part}": cache for part, cache in zip(("key", "value"), caches, strict=True)}
        logits, *caches = session.run(None, {**feeds, "use_cache_branch": np.array([True])})
        total, ids = total + len(ids), [int(logits[0, -1].argmax())]
        expected += ids
    (folder / "genai_config.json").unlink()
    ran = cli("generate", "tiny/merged.onnx", "--prompt-ids", "3,1,4", "--tokens", 6)
    assert (ran.code, ran.out.split()) == (0, [str(token) for token in expected])


def test_prompts_beside_each_other_make_what_each_makes_alone(cli, folder):
    prompts, expected = ([3, 1, 4], [5], [9, 2]), []
    for prompt in prompts:
        alone = greedy(folder / "model.onnx", prompt, 12)
        expected.append(alone[: alone.index(23) + 1] if 23 in alone else alone)
    given = [word for prompt in prompts for word in ("--prompt-ids", ",".join(map(str, prompt)))]
    ran = cli("generate", "tiny", *given, "--tokens", 12, "-v")
    assert (ran.code, [[int(token) for token in line.split()] for line in ran.out.splitlines()]) == (0, expected)
    assert "in all of 3 sequences" in ran.err
    warm = ("--tokens", 9, "--temperature", 2, "--stop-ids", VOCABULARY, "--json")
    told = json.loads(cli("generate", "tiny", *given, *warm, "--seed", 7).out)["sequences"]
    again = json.loads(cli("generate", "tiny", *given, *warm, "--seed", 4, "--seed", 8, "--seed", 6).out)["sequences"]
    assert [a == b for a, b in zip(told, again, strict=True)] == [False, True, False]
    refused = cli("generate", "tiny", *given, "--seed", 4, "--seed", 8)
    assert (refused.code, "there are 2 seeds for 3 prompts" in refused.err) == (2, True)


def test_other_runtimes_make_the_same_tokens_in_turns(cli, folder):
    against = ("--prompt-ids", "3,1,4", "--against", "onnxruntime,genai,openvino", "--threads", 2, "--json")
    other = json.loads(cli("generate", "tiny", *against).out)["against"]
    names = ("onnxruntime", "genai", "openvino")
    assert {name: peer["equal_tokens"] for name, peer in other.items()} == dict.fromkeys(names, 37)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("tiny",), 2, "there is no prompt"),
        (("tiny", "--prompt", "a", "--prompt-ids", "1"), 2, "there are prompts of text and of tokens"),
        (("tiny", "--prompt-ids", "1,x"), 2, "'x' is no token"),
        (("tiny", "--prompt-ids", "1,2", "--tokens", "39"), 2, "Ask for fewer: --tokens 38."),
        (
            ("tiny", "--prompt-ids", "1", "--tokens", "4", "--against", "vllm"),
            2,
            "Take of onnxruntime, genai, openvino, llama.cpp.",
        ),
        (("nothing", "--prompt-ids", "1"), 2, "nothing"),
        (("tiny", "--prompt-ids", "24", "--tokens", "4"), 2, "24 is no token of the model"),
    ],
)
def test_what_cannot_be_generated_is_said(cli, folder, arguments, code, message):
    ran = cli("generate", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_a_folder_without_what_is_needed_is_refused_with_a_way_out(cli, folder):
    (folder / "tokenizer.json").unlink()
    assert "Give tokens: --prompt-ids" in cli("generate", "tiny", "--prompt", "a").err
    (folder / "genai_config.json").write_text("{")
    broken = cli("generate", "tiny", "--prompt-ids", "1")
    assert (broken.code, "genai_config.json" in broken.err) == (2, True)
    (folder / "genai_config.json").unlink()
    none = cli("generate", "tiny", "--prompt-ids", "1")
    assert (none.code, "there is no genai_config.json" in none.err) == (2, True)


def test_an_interrupt_leaves_what_was_made(cli, folder, monkeypatch):
    from tilec import decoding

    def interrupted(*_arguments, **_options):
        yield (5,)
        raise KeyboardInterrupt

    monkeypatch.setattr(decoding, "generate_batch", interrupted)
    ran = cli("generate", "tiny", "--prompt-ids", "1")
    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (130, "5\n", "error: interrupted")


def test_a_refusal_on_the_way_leaves_what_was_made(cli, folder, monkeypatch):
    from tilec import decoding
    from tilec.errors import UsageError

    def refused(*_arguments, **_options):
        yield (5,)
        raise UsageError("the text is too long")

    monkeypatch.setattr(decoding, "generate_batch", refused)
    ran = cli("generate", "tiny", "--prompt-ids", "1")
    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (2, "5\n", "error: the text is too long")


def test_what_fails_in_a_peer_is_the_peers_and_the_next_one_goes_on(cli, folder, monkeypatch):
    from tilec.decoding.peers import on_onnxruntime

    def failing(*_arguments):
        def call(_feeds, _out):
            raise ValueError("Exception from a file:\nshapes differ\nat a node")

        return call

    monkeypatch.setattr(on_onnxruntime, "_call", failing)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    against = ("--against", "onnxruntime,llama.cpp,genai")
    ran = cli("generate", "tiny", "--prompt-ids", "1", "--tokens", 2, *against)
    assert ran.code == 0
    assert ran.err.splitlines()[-3:-1] == [
        "onnxruntime: not compared: onnxruntime cannot run the model: shapes differ. "
        "Leave onnxruntime out of --against.",
        "llama.cpp: not compared: xllamacpp is not installed. Run `pip install xllamacpp`.",
    ]
    assert "genai: prefill" in ran.err
    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace())
    told = json.loads(cli("generate", "tiny", "--prompt-ids", "1", "--json", "--against", "llama.cpp").out)
    assert told["against"] == {"llama.cpp": {"error": "llama.cpp reads no ONNX files, but GGUF files"}}


def test_a_compiled_model_takes_nothing_that_compiling_takes(cli, tmp_path):
    (tmp_path / "built.tilec").mkdir()
    (tmp_path / "built.tilec" / "3-kernels.json").write_text("{}")
    for option in ("--bind", "--device", "--recipe"):
        ran = cli("generate", "built.tilec", "--prompt-ids", "1", option, "b=1")
        assert (ran.code, f"{option}: this model is compiled already" in ran.err) == (2, True)
