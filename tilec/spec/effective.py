"""The recipe in effect: flag over TILEC_* variable over recipe file over device, each value with its origin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.artifact import compact
from tilec.errors import ConfigError
from tilec.spec.contradictions import Contradiction, recipe_contradictions, refuse
from tilec.spec.device import DeviceSpec
from tilec.spec.located import KeyPath, Located, Spec, parse_yaml, validate
from tilec.spec.recipe import CompileRecipe
from tilec.spec.resolve import device_source, packaged, parse_device, recipe_source
from tilec.spec.source import Source
from tilec.spec.types import with_type_files


@dataclass(frozen=True)
class Effective:
    """A recipe after all sources were merged, its device, and where each value came from.

    `origins` maps a dotted key to a flag, a variable, `file:line:column`, `device NAME` or `default`.
    """

    recipe: CompileRecipe
    device: DeviceSpec
    device_source: Source
    origins: Mapping[str, str]

    def text(self) -> str:
        """The recipe as YAML with the origin of each value beside it (`--print-recipe`)."""
        return "\n".join(_lines(self.recipe.model_dump(mode="json"), (), self.origins)) + "\n"


def effective_recipe(
    recipe: str | None,
    flags: Mapping[str, tuple[str, Any]],
    environ: Mapping[str, str],
    *,
    host_file: Path | None = None,
) -> Effective:
    """Merge the sources of a compile recipe.

    `recipe` is a name or a file (None: built-in defaults), `flags` maps a dotted key such as
    `schedule.fusion` or `shapes.batch.value` to the flag's name and value, `environ` holds variables such as
    `TILEC_SCHEDULE_FUSION` whose values are YAML. `host_file` stands for device `host` where it exists.
    Raises UsageError or ConfigError that name the source.
    """
    file, over, folder = _layers(recipe, flags, environ)
    chosen = validate(CompileRecipe, _merge([file, *over]))
    beside = None if any("device" in layer.data for layer in over) else folder
    found = device_source(chosen.device, relative_to=beside, host_file=host_file)
    device = parse_device(found)
    refuse(_of_file(recipe_contradictions(chosen, device, folder), over), file)
    merged = _merge([_from_device(device), file, *over])
    result = _placed(validate(CompileRecipe, merged), over, folder)
    given = {path: merged.place(path) or "default" for path, _ in _leaves(merged.data)}
    origins = {_dotted(path): _origin(path, given) for path, _ in _leaves(result.model_dump(mode="json"))}
    return Effective(result, device, found, origins)


def recipe_without_device(
    recipe: str | None, flags: Mapping[str, tuple[str, Any]], environ: Mapping[str, str]
) -> CompileRecipe:
    """The merged recipe for stages that ask nothing of the device; it is not looked up, so `host` measures nothing.

    Raises what `effective_recipe` raises about recipe, flags and variables.
    """
    file, over, folder = _layers(recipe, flags, environ)
    return _placed(validate(CompileRecipe, _merge([file, *over])), over, folder)


def _layers(
    recipe: str | None, flags: Mapping[str, tuple[str, Any]], environ: Mapping[str, str]
) -> tuple[Located, list[Located], Path | None]:
    """The recipe file, what overrides it, and the folder that files are named from in it (None: the current one)."""
    file = Located({})
    folder = None
    if recipe is not None:
        source = recipe_source(recipe)
        file = parse_yaml(source.text, source.place)
        if file.data.get("kind", "compile") != "compile":
            raise ConfigError(f"expected kind 'compile', found {file.data['kind']!r}", file.place(("kind",)))
        folder = None if recipe in packaged("recipes") else Path(source.place).parent
    over = [with_type_files(_from_environment(environ), None), _from_flags(flags)]
    return with_type_files(file, folder), over, folder


def _of_file(contradictions: Iterator[Contradiction], over: list[Located]) -> Iterator[Contradiction]:
    """Those of keys that no flag and no variable gives: these are refused where they are used."""
    given = [path for layer in over for path, _ in _leaves(layer.data)]
    return (each for each in contradictions if not any(_overlap(path, each.path) for path in given))


_FILES = (("schedule", "record"), ("verify", "inputs"))
"""Keys that name files."""


def _placed(recipe: CompileRecipe, over: list[Located], folder: Path | None) -> CompileRecipe:
    """The recipe with the files that its own file names at their places beside that file."""
    for section, key in _FILES:
        options = getattr(recipe, section)
        name = getattr(options, key)
        if name is not None and folder is not None and not any(key in layer.data.get(section, {}) for layer in over):
            recipe = recipe.model_copy(update={section: options.model_copy(update={key: str(folder / name)})})
    return recipe


def _dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))


def variable(key: str) -> str:
    """The environment variable of a dotted recipe key."""
    return "TILEC_" + key.upper().replace(".", "_")


def _from_flags(flags: Mapping[str, tuple[str, Any]]) -> Located:
    given: dict[KeyPath, tuple[str, Any]] = {tuple(key.split(".")): flag for key, flag in flags.items()}
    places = {path: name for path, (name, _) in given.items()}
    return Located(_nest({path: value for path, (_, value) in given.items()}), places, places)


def _from_environment(environ: Mapping[str, str]) -> Located:
    names = {path: variable(_dotted(path)) for path in _keys()}
    places = {path: name for path, name in names.items() if name in environ}
    given = {path: parse_yaml(f"value: {environ[name]}", name).data["value"] for path, name in sorted(places.items())}
    return Located(_nest(given), places, places)


def _from_device(device: DeviceSpec) -> Located:
    """Values that the device gives recipe keys, under everything else."""
    given: dict[KeyPath, Any] = {
        ("codegen", "threads"): device.cores,
        ("codegen", "processor"): device.target.processor,
        ("codegen", "features"): list(device.target.features),
    }
    return Located(_nest(given), {}, dict.fromkeys(given, f"device {device.name}"))


def _keys() -> Iterator[KeyPath]:
    """Paths of all keys of a compile recipe, sections included, and of those that are refused."""
    yield from ((key,) for key in CompileRecipe.refused)
    for name, each in CompileRecipe.model_fields.items():
        key = each.alias or name
        yield (key,)
        section = each.annotation
        if isinstance(section, type) and issubclass(section, Spec):
            yield from ((key, inner) for inner in (*section.model_fields, *section.refused))


def _merge(layers: list[Located]) -> Located:
    """One value for each key, of the last layer that has it; lists are replaced, mappings merged."""
    leaves: dict[KeyPath, Any] = {}
    keys: dict[KeyPath, str] = {}
    values: dict[KeyPath, str] = {}
    for layer in layers:
        for path, value in _leaves(layer.data):
            leaves = {known: kept for known, kept in leaves.items() if not _overlap(known, path)}
            values = {known: place for known, place in values.items() if known[: len(path)] != path}
            leaves[path] = value
        keys.update(layer.keys)
        values.update(layer.values)
    return Located(_nest(leaves), keys, values, next((layer.whole for layer in layers if layer.whole), ""))


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """Whether one path leads to the other or inside it."""
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]


def _nest(leaves: Mapping[KeyPath, Any]) -> dict[str, Any]:
    """Nested mappings from paths; later paths go into what earlier ones made."""
    root: dict[Any, Any] = {}
    for path, value in leaves.items():
        inner = root
        for step in path[:-1]:
            if not isinstance(inner.get(step), dict):
                inner[step] = {}
            inner = inner[step]
        inner[path[-1]] = value
    return root


def _leaves(data: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Values that are no mappings, with their paths."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _origin(path: KeyPath, given: Mapping[KeyPath, str]) -> str:
    """The source that gave the value at `path`, or the value that it was read from."""
    known = (given[path[:depth]] for depth in range(len(path), 0, -1) if path[:depth] in given)
    return next(known, "default")


def _lines(data: Mapping[str, Any], path: KeyPath, origins: Mapping[str, str]) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in data.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:" + ("" if value else " {}")
            yield from _lines(value, (*path, key), origins)
        else:
            yield f"{indent}{key}: {compact(value)}  # {origins[_dotted((*path, key))]}"
