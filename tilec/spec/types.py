"""Type files: elements of few bits that a user describes, and formats that recipes make of them (Ladder, 4.2; L25)."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tilec.errors import ConfigError, UsageError
from tilec.ir.codes import check_decoding
from tilec.ir.formats import parse_format
from tilec.ir.types import is_ttype
from tilec.spec.located import Disagreement, Located, Spec, parse_yaml, validate
from tilec.spec.resolve import packaged, type_source

_REFERENCE = re.compile(r"(?P<name>[\w./-]+)(?P<rest>\[.*)?")


class TypeSpec(Spec):
    """A type of elements: what number a code stands for, and the groups, scales and zero points of weights by default.

    A recipe names the file: `types: {"*_proj.weight": e3m1}` or, with other groups, `e3m1[64]*f16`.
    """

    kind: Literal["type"] = Field(description="of the file")
    description: str = Field(min_length=1, description="what the type is for")
    bits: int = Field(ge=1, le=8, description="of a code")
    numbers: Literal["int", "uint", "float"] = Field(description="what codes stand for; floats are computed in f32")
    decode: str = Field(min_length=1, description="the number of the u32 `code`, as an expression: an i32 or f32")
    group: Annotated[int, Field(gt=0)] | Literal["column"] = Field(
        default="column", description="elements along the reduction that share a scale; column: all of them"
    )
    scale: str = Field(default="f32", description="type of scales")
    zero: str = Field(default="", description="type of zero points (absent: none)")

    @model_validator(mode="after")
    def _is_a_format(self) -> "TypeSpec":
        try:
            check_decoding(self.element)
        except ValueError as error:
            raise Disagreement(f"the expression is wrong: {error}", "decode", "numbers") from error
        try:
            parse_format(self.format)
        except ValueError as error:
            raise Disagreement(str(error), "scale", "numbers") from error
        return self

    @property
    def element(self) -> str:
        """The name of the type, which describes it."""
        return f"code<{self.bits} {self.numbers}: {' '.join(self.decode.split())}>"

    @property
    def format(self) -> str:
        """The format of weights when a recipe says no other."""
        zero = f"-{self.zero}" if self.zero else ""
        return f"{self.element}[{self.group}]*{self.scale}{zero}"


def resolve_type(name: str, *, relative_to: Path | None = None) -> TypeSpec:
    """The type of a name or file. Raises UsageError when there is none, ConfigError when it is wrong."""
    source = type_source(name, relative_to=relative_to)
    return validate(TypeSpec, parse_yaml(source.text, source.place))


def with_type_files(located: Located, folder: Path | None) -> Located:
    """A recipe whose `types` have the formats of type files instead of their names; files are named from `folder`.

    Raises ConfigError with the place of a name of a file that is missing or wrong.
    """
    types = located.data.get("types")
    if not isinstance(types, dict):
        return located
    formats = {}
    for pattern, text in types.items():
        try:
            formats[pattern] = _format(text, folder)
        except UsageError as error:
            raise ConfigError(str(error), located.place(("types", pattern))) from error
    return Located(located.data | {"types": formats}, located.keys, located.values, located.whole)


def _format(text: Any, folder: Path | None) -> Any:
    match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if match is None or is_ttype(match["name"]):
        return text
    name, rest = match["name"], match["rest"]
    if name not in packaged("types") and not name.endswith((".yaml", ".yml")):
        return text
    spec = resolve_type(name, relative_to=folder)
    return spec.element + rest if rest else spec.format
