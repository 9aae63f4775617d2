"""`ai.tilec.Decode`: constants of a type that the model describes (Ladder, 4.2: ONNX extension; L25)."""

from __future__ import annotations

from math import prod

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import TILEC, operator
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.codes import check_decoding, number_type
from tilec.ir.types import TTYPES, is_ttype
from tilec.ir.words import word_type

EXAMPLE = "code<5 float: f32(i32(code)) * 0.5>"


@operator("Decode", domain=TILEC)
def _decode(op: Op) -> Value:
    """The numbers of a constant `[..., words]`, whose codes `[..., size]` are packed along the last dimension.

    attributes: `ttype`, a coded type by its name or as text; `size`, by default as many elements as words hold.
    """
    words, ttype = op.value(0), op.text("ttype")
    _require_type(op, ttype)
    stored, kind = op.builder.stored(words.name), TTYPES[ttype]
    if stored is None:
        raise op.unsupported("codes that are no constant", "Make the input an initializer.")
    if words.ttype != word_type(ttype) or not words.rank:
        wanted = f"{word_type(ttype)}, {kind.per_word} elements in each"
        raise op.invalid(f"words of type {words.ttype}", f"Pack codes of {kind.bits} bits into words of {wanted}.")
    most = stored.array.shape[-1] * kind.per_word
    size = op.integer("size", most)
    if not most - kind.per_word < size <= most and prod(stored.array.shape):
        raise op.invalid(f"{size} elements in {stored.array.shape[-1]} words", f"Words hold {most} of them.")
    shape = (*stored.array.shape[:-1], size)
    codes = op.builder.constant(f"{words.name}_codes", Stored(stored.array, ttype, stored.ref, shape))
    axes = op.axes_of(codes.shape)
    number = number_type(ttype)
    return op.emit(axes, formula(f"{number}(x)", x=codes.access([a.var for a in axes])), number)


def _require_type(op: Op, ttype: str) -> None:
    """Raise ConfigError unless a text is a coded type with an expression of the right type."""
    if not is_ttype(ttype) or not TTYPES[ttype].coded:
        raise op.invalid(f"the type {ttype!r}", f"Name one, like i4, or describe it, like {EXAMPLE!r}.")
    try:
        check_decoding(ttype)
    except ValueError as error:
        raise op.invalid(f"the type {ttype!r}: {error}", f"Decode the u32 `code`, like {EXAMPLE!r}.") from error
