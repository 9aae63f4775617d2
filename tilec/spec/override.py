"""A device file with other values for some keys, its comments kept: `levels.smem.capacity=100KiB`."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, MutableSequence
from dataclasses import replace
from io import StringIO
from typing import Any

from tilec.errors import UsageError, did_you_mean
from tilec.spec.source import Source


def with_values(source: Source, settings: Iterable[str], place: str = "--set") -> Source:
    """The text with the value of every `PATH=VALUE` instead of its own; the result is not checked yet.

    A path has the keys of the file, joined by dots; entries of a list go by their `name` or their number. A last key
    that the file leaves out is added. Raises UsageError at `place` for another form, and for a missing key on the way.
    """
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10**6
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(source.text)
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or not path.strip() or not value.strip():
            raise UsageError(f"{setting!r} sets nothing", place, "Write it like levels.smem.capacity=100KiB.")
        *way, last = path.strip().split(".")
        entry: Any = document
        for step in way:
            entry = entry[_key(entry, step, source, place)]
        if not isinstance(entry, MutableMapping | MutableSequence):
            raise UsageError(f"{'.'.join(way)} of {source.place} has no keys", place)
        key: Any = last if isinstance(entry, MutableMapping) else _key(entry, last, source, place)
        entry[key] = YAML(typ="safe").load(value)
    text = StringIO()
    yaml.dump(document, text)
    return replace(source, text=text.getvalue())


def _key(entry: Any, key: str, source: Source, place: str) -> Any:
    """The key of a table, or the number of a list's entry with a name. Raises UsageError for what is not there."""
    if isinstance(entry, MutableMapping):
        keys = {str(each): each for each in entry}
    elif isinstance(entry, MutableSequence):
        keys = {str(n): n for n in range(len(entry))}
        keys |= {str(each["name"]): n for n, each in enumerate(entry) if isinstance(each, dict) and "name" in each}
    else:
        keys = {}
    if key in keys:
        return keys[key]
    near = did_you_mean(key, list(keys))
    hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(keys)}." if keys else None
    raise UsageError(f"{source.place} has no {key!r} there", place, hint)
