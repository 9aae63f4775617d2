"""YAML in which every key and value knows its line and column, and pydantic errors that say them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, to_json
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tilec.errors import ConfigError, did_you_mean

KeyPath = tuple[str | int, ...]
"""Keys and list positions that lead to a value."""

MOST_VALUES = 100_000
"""Keys and values of a file, aliases counted as often as they are used."""

LARGEST = (1 << 63) - 1
"""Integers beyond are refused."""

_CORE = "tag:yaml.org,2002:"
_KEY_TAGS = {_CORE + each for each in ("str", "int", "float", "bool", "null", "timestamp")}


class Refused(NamedTuple):
    """The reason why a key that people expect is not supported, and what to do instead."""

    reason: str
    fix: str


class Disagreement(ValueError):
    """Two keys of one mapping that do not go together: `key` is wrong where `other` is right."""

    def __init__(self, message: str, key: str, other: str) -> None:
        super().__init__(message)
        self.key = key
        self.other = other


class Spec(BaseModel):
    """Base of everything that a YAML file describes: frozen, no unknown keys, no silent conversions.

    `refused` are keys that would have no effect."""

    refused: ClassVar[Mapping[str, Refused]] = {}
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=False, serialize_by_alias=True)


S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class Located:
    """Plain data with the place (`file:line:column`, a flag, a variable) of every key and value in it."""

    data: dict[str, Any]
    keys: Mapping[KeyPath, str] = field(default_factory=dict)
    values: Mapping[KeyPath, str] = field(default_factory=dict)
    whole: str = ""

    def place(self, path: KeyPath, *, key: bool = False) -> str | None:
        """The place of the value (or key) at `path`, or of the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, self.whole) or None


TAG = "!"
"""Key of a mapping's tag where tags are allowed."""


def parse_yaml(text: str, name: str, *, tags: bool = False) -> Located:
    """The mapping in `text`. Raises ConfigError with line and column for anything but plain YAML data.

    Only the core types are made (YAML 1.2): no tags, no merge keys, nothing is ever evaluated.  With `tags` mappings
    may have one of their own, `!Memory`, which stands in them under `TAG`.
    """
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise ConfigError(f"not valid YAML: {error.problem or error.context}", place) from error
    except YAMLError as error:
        raise ConfigError(f"not valid YAML: {str(error).splitlines()[0]}", name) from error
    except RecursionError as error:
        raise ConfigError("nested too deep", name) from error
    keys: dict[KeyPath, str] = {}
    values: dict[KeyPath, str] = {}
    if not isinstance(root, MappingNode):
        raise ConfigError("expected keys and values", name if root is None else _mark(root, name))
    try:
        data = _plain(root, (), _Reading(name, tags, keys, values), frozenset())
    except RecursionError as error:
        raise ConfigError("nested too deep", name) from error
    return Located(data, keys, values, name)


def validate(model: type[S], located: Located) -> S:
    """An instance of `model`. Raises ConfigError with the place and the nearest valid key."""
    try:
        # Through JSON, where strictness still lets a list become a tuple.
        return model.model_validate_json(to_json(located.data))
    except ValidationError as error:
        details = [detail for detail in error.errors() if not _follows(located, detail)]
        problems = [_problem(model, located, detail) for detail in details]
    # An unknown key comes first: it often explains a missing one.
    problems.sort(key=lambda problem: not problem.message.startswith("unknown key"))
    first, *others = problems
    lines = [first.hint] if first.hint else []
    lines += [f"Also {str(other).replace(chr(10), '')}" for other in others]
    raise ConfigError(first.message, first.place, "\n  ".join(lines) or None)


def _mark(node: Node, name: str) -> str:
    return f"{name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


@dataclass(frozen=True)
class _Reading:
    """The file's name, whether mappings may have tags, and the places found so far."""

    name: str
    tags: bool
    keys: dict[KeyPath, str]
    values: dict[KeyPath, str]


def _plain(node: Node, path: KeyPath, reading: _Reading, around: frozenset[int]) -> Any:
    """`node` as plain data, recording the place of everything in it."""
    place = reading.values[path] = _mark(node, reading.name)
    if len(reading.values) > MOST_VALUES:
        raise ConfigError(f"more than {MOST_VALUES} values", place)
    if id(node) in around:
        raise ConfigError("an alias inside what it stands for", place)
    around = around | {id(node)}
    if isinstance(node, ScalarNode):
        return _scalar(node, place)
    if isinstance(node, SequenceNode) and node.tag == _CORE + "seq":
        return [_plain(each, (*path, i), reading, around) for i, each in enumerate(node.value)]
    tag = str(node.tag)
    own = reading.tags and tag.startswith("!")
    if isinstance(node, MappingNode) and (own or tag == _CORE + "map"):
        result: dict[str, Any] = {TAG: tag} if own else {}
        for key_node, value_node in node.value:
            key_place = _mark(key_node, reading.name)
            if not isinstance(key_node, ScalarNode) or str(key_node.tag) not in _KEY_TAGS:
                raise ConfigError("a key must be a plain word", key_place)
            key = _text(str(key_node.value), key_place)
            if key in result:
                raise ConfigError(f"key {key!r} appears twice", key_place)
            reading.keys[(*path, key)] = key_place
            result[key] = _plain(value_node, (*path, key), reading, around)
        return result
    raise ConfigError(f"tags are not allowed: {node.tag}", place)


def _scalar(node: ScalarNode, place: str) -> Any:
    text = str(node.value)
    match str(node.tag).removeprefix(_CORE):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _integer(text.replace("_", ""), place)
        case "float":
            number = text.replace("_", "").lower()
            if "nan" in number or "inf" in number:
                raise ConfigError(f"{text} is not a number that can be used here", place)
            return float(number)
        case "str" | "timestamp":
            return _text(text, place)
    raise ConfigError(f"tags are not allowed: {node.tag}", place)


def _integer(digits: str, place: str) -> int:
    """The value of decimal, hexadecimal, octal or binary digits. Raises ConfigError beyond 64 bits."""
    based = digits.lstrip("+-")[:2].lower() in ("0x", "0o", "0b")
    number = int(digits, 0 if based else 10) if len(digits) <= 70 else LARGEST + 1
    if abs(number) > LARGEST:
        raise ConfigError("an integer of more than 64 bits", place)
    return number


def _text(text: str, place: str) -> str:
    """The text as it is. Raises ConfigError for half of a surrogate pair, which no file can hold."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ConfigError("a character that is half of a surrogate pair", place)
    return text


def _follows(located: Located, detail: ErrorDetails) -> bool:
    """Whether a list is only too short because of the wrong values in it, which are told."""
    found = _at(located.data, detail["loc"])
    return detail["type"] == "too_short" and isinstance(found, list) and len(found) >= detail["ctx"]["min_length"]


def _problem(model: type[BaseModel], located: Located, detail: ErrorDetails) -> ConfigError:
    """One pydantic error as a sentence with a place."""
    path, context = detail["loc"], detail.get("ctx", {})
    found = _at(located.data, path)
    match detail["type"]:
        case "extra_forbidden":
            for each in _models_at(model, path[:-1]):
                if (refused := each.refused.get(str(path[-1]))) is not None:
                    place = located.place(path, key=True)
                    return ConfigError(f"key {path[-1]!r} is not supported: {refused.reason}", place, refused.fix)
            known = _fields_at(model, path[:-1])
            near = did_you_mean(str(path[-1]), known)
            hint = f"Did you mean {near!r}?" if near else f"Its keys are {', '.join(known)}."
            return ConfigError(f"unknown key {path[-1]!r}", located.place(path, key=True), hint)
        case "missing":
            return ConfigError(f"key {path[-1]!r} is missing", located.place(path[:-1]))
        case "value_error":
            message = str(context["error"])
            if isinstance(error := context["error"], Disagreement):
                other = located.place((*path, error.other))
                hint = f"`{error.other}` is given at {other}."
                of = f"{path[-1]}: " if path else ""
                return ConfigError(of + message, located.place((*path, error.key)), hint)
        case "too_short":
            message = f"expected at least {context['min_length']}, found {found!r}"
        case "literal_error":
            message = f"expected {context['expected']}, found {found!r}"
        case _:
            shown = "keys and values" if isinstance(found, dict) else repr(found)
            expected = detail["msg"].removeprefix("Input should be ").removeprefix("a valid ")
            message = f"expected {expected}, found {shown}"
    return ConfigError(message, located.place(path))


def _at(data: Any, path: KeyPath) -> Any:
    """The value of the file at `path`, as far as the path leads."""
    for step in path:
        here = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(here, dict) and step in here:
            data = here[step]
    return data


def _fields_at(model: Any, path: KeyPath) -> list[str]:
    """The keys that the model reached from `model` along `path` accepts."""
    fields = [field for each in _models_at(model, path) for field in each.model_fields.items()]
    return [each.alias or name for name, each in fields]


def _models_at(model: Any, path: KeyPath) -> list[type[Spec]]:
    """The models reached from `model` along `path`."""
    for step in path:
        model = _step(model, step)
    return [member for member in _members(model) if _is_model(member)]


def _step(hint: Any, step: str | int) -> Any:
    for member in _members(hint):
        if _is_model(member):
            for name, each in member.model_fields.items():
                if step in (name, each.alias):
                    return each.annotation
        elif get_origin(member) in (tuple, list) and isinstance(step, int):
            return get_args(member)[0]
        elif get_origin(member) is dict:
            return get_args(member)[1]
    return hint


def _members(hint: Any) -> Iterator[Any]:
    """The alternatives of a hint: itself, or what a union or an annotation is made of."""
    arguments = get_args(hint)
    if hint is None or get_origin(hint) in (tuple, list, dict) or not arguments:
        yield hint
    else:
        for argument in arguments:
            yield from _members(argument)


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Spec)
