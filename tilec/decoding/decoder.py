"""The ports of a decoder by their role: tokens, mask, positions, places in caches, logits, caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tilec.abi.manifest import PortSpec, TensorSpec
from tilec.decoding.genai_config import GenaiConfig
from tilec.errors import UnsupportedError

if TYPE_CHECKING:
    from tilec.runtime import Session

ROOM = 64
"""Caches have room for a multiple of so many tokens."""

READS_CACHES = "use_cache_branch"
"""The input of a merged decoder, as optimum writes it, that chooses between the branch which reads caches and the one
which has none yet. The first takes caches of no rows as well."""

SCALES = "_scales"
"""What the name of a rounded cache's scales ends with, which are a cache beside it."""

_CALLED = (("past_key_values", "present"), ("past", "present"), ("past_key_values", "present_key_values"))
"""How the output of a cache is called after its input."""

_FLOATS = ("f32", "f16", "bf16", "f64")


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache: the input that has it before a call and the output that has it afterwards; `along` is the dimension of
    tokens. It `grows` with every call or has its room from the first on; the output is the input's memory where it is
    `in_place`."""

    past: TensorSpec
    present: str
    along: int
    grows: bool = False
    in_place: bool = False

    def shape(self, tokens: int, batch: int = 1) -> tuple[int, ...]:
        """The shape with room for so many tokens of each sequence of a batch."""
        named = {0: batch, self.along: tokens}
        return tuple(
            extent if isinstance(extent, int) else named.get(dim, 1) for dim, extent in enumerate(self.past.shape)
        )


@dataclass(frozen=True, slots=True)
class Decoder:
    """Names of the ports of a decoder; `places` are those of the new tokens in caches, and the length of `rows` is the
    number of earlier ones, where caches that grow in the model have room for more. `room` is that of caches that
    hold all tokens where it is fixed, `window` the least of those that hold the latest ones, `positions_end` the
    number of positions that the model has where its mask tells them. Shorter prompts of a batch are `padded` on that
    side, None where nothing tells padding from tokens."""

    ids: TensorSpec
    mask: TensorSpec | None
    positions: TensorSpec | None
    places: TensorSpec | None
    logits: TensorSpec
    caches: tuple[Cache, ...]
    room: int | None
    window: int = 0
    positions_end: int | None = None
    rows: TensorSpec | None = None
    padded: Literal["left", "right"] | None = None

    @property
    def in_the_model(self) -> Decoder:
        """The decoder as other runtimes have it: caches of the type of logits where they are rounded here; they grow
        where their rows are told, but for those of fixed room, in which new tokens have places."""
        scales = {name for each in self.caches if (name := f"{each.past.name}{SCALES}") in self._past}
        caches = tuple(
            replace(each, past=replace(each.past, ttype=self.logits.ttype))
            if f"{each.past.name}{SCALES}" in scales
            else each
            for each in self.caches
            if each.past.name not in scales
        )
        if self.rows is not None and self.places is None:
            caches = tuple(replace(each, grows=each.grows or each.in_place, in_place=False) for each in caches)
        return replace(self, rows=None, caches=caches)

    @property
    def _past(self) -> frozenset[str]:
        return frozenset(each.past.name for each in self.caches)

    def most(self, prompt: int) -> int | None:
        """Tokens that can be made of a prompt of so many: all but the last one have a position and room. None for any
        number."""
        limits = [limit for limit in (self.room, self.positions_end) if limit is not None]
        return max(min(limits) - prompt + 1, 0) if limits else None

    def room_for(self, prompt: int, tokens: int) -> int:
        """Tokens that caches have room for in a generation, if they do not grow."""
        return self.room or max(-(-(prompt + tokens) // ROOM) * ROOM, self.window)


def decoder_of(session: Session, config: GenaiConfig | None = None) -> Decoder:
    """The ports of a compiled model as a decoder's, by the names in a configuration or by the usual ones.

    Raises UnsupportedError for a model that has other inputs than a decoder, or lacks one.
    """
    inputs = {port.name: port for port in session.inputs}
    named = {} if config is None else config.inputs
    ids = _tensor(inputs, named.get("input_ids", "input_ids"))
    if ids is None:
        raise _other(f"it has no input {named.get('input_ids', 'input_ids')!r} of tokens", inputs)
    mask = _tensor(inputs, named.get("attention_mask", "attention_mask"))
    positions = _tensor(inputs, named.get("position_ids", "position_ids"))
    places = _tensor(inputs, "cache_position")
    outputs = {port.name: port for port in session.outputs}
    logits = _tensor(outputs, (config.outputs if config else {}).get("logits", "logits"))
    if logits is None or logits.ttype not in _FLOATS or len(logits.shape) != 3:
        raise _other("it has no output `logits` [batch, tokens, vocabulary]", outputs)
    rows = next((port for port in session.inputs if isinstance(port, TensorSpec) and _tells_rows(port)), None)
    rest = [port for port in session.inputs if port not in (ids, mask, positions, places, rows)]
    pairs = {**_pairs(rest, outputs, config), **session.states}
    strange = [port.name for port in rest if port.name not in pairs]
    if strange:
        raise _other(f"its input {strange[0]!r} has no role in a decoder", inputs)
    made = [(port, outputs.get(pairs[port.name])) for port in rest]
    caches = tuple(
        _cache(past, present, past.name in session.states)
        for past, present in made
        if isinstance(past, TensorSpec) and isinstance(present, TensorSpec)
    )
    extents = [each.past.shape[each.along] for each in caches if not each.grows]
    room = min((extent for extent in extents if isinstance(extent, int)), default=None)
    ends = {symbol.name: symbol.high for symbol in session.symbols}
    told = None if mask is None else ends.get(str(mask.shape[-1]))
    window = 0 if config is None else config.window
    padded = None if mask is None else _padded(caches, config, shared=rows is not None or places is not None)
    return Decoder(ids, mask, positions, places, logits, caches, room, window, told, rows, padded)


def _padded(caches: Iterable[Cache], config: GenaiConfig | None, shared: bool) -> Literal["left", "right"]:
    """The side on which prompts are filled up: left where the new rows of all sequences are at one `shared` place, as
    behind caches that grow. GroupQueryAttention's rows, which onnxruntime-genai's builder writes, are behind those of
    each sequence."""
    return "right" if not shared and (config is not None or any(each.in_place for each in caches)) else "left"


def _tells_rows(port: TensorSpec) -> bool:
    """Whether an input is there for its length alone, which is called as the input is."""
    return port.ttype == "bool" and port.shape == (port.name,)


def _tensor(ports: Mapping[str, PortSpec], name: str) -> TensorSpec | None:
    port = ports.get(name)
    return port if isinstance(port, TensorSpec) else None


def _pairs(rest: Iterable[PortSpec], outputs: Mapping[str, PortSpec], config: GenaiConfig | None) -> dict[str, str]:
    """Input -> output of caches that grow."""
    pairs: dict[str, str] = {}
    if config is not None:
        for part in ("key", "value"):
            past, present = config.inputs.get(f"past_{part}_names"), config.outputs.get(f"present_{part}_names")
            if past is not None and present is not None and "%d" in past and "%d" in present:
                pairs |= {past.replace("%d", str(n)): present.replace("%d", str(n)) for n in range(config.layers)}
    for port in rest:
        for old, new in _CALLED:
            made = port.name.replace(old, new)
            if made != port.name and made in outputs:
                pairs.setdefault(port.name, made)
    return {past: present for past, present in pairs.items() if present in outputs}


def _cache(past: TensorSpec, present: TensorSpec, in_place: bool) -> Cache:
    """The dimension of tokens is the last that varies but for the first, which is the batch; of a cache without one the
    last but one."""
    open_ = [dim for dim, extent in enumerate(past.shape) if isinstance(extent, str) and dim > 0]
    along = open_[-1] if open_ else len(past.shape) - 2
    return Cache(past, present.name, along, past.shape != present.shape, in_place)


def _other(reason: str, ports: Mapping[str, PortSpec]) -> UnsupportedError:
    return UnsupportedError(
        f"this model is no decoder that `generate` can drive: {reason}",
        hint=f"It has {', '.join(map(repr, ports))}. Drive it from Python: tilec.load(...).run(...).",
    )
