"""Options of `torch.compile(model, backend="tilec", options={...})`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tilec.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose.

    device, recipe   names or files, as the command line takes them
    while_compiling  `wait` for the compiler, or let PyTorch serve meanwhile (`eager`)
    specialize       whether sizes that are seen often get models of their own: `off`, `likely`
    cache            folder of compiled models (None: that of the user)
    threads          threads that take part in a run (None: PyTorch's number)
    strict           whether what has no translation is an error, and does not stay in PyTorch
    """

    device: str = "host"
    recipe: str | None = None
    while_compiling: str = "wait"
    specialize: str | None = None
    cache: str | None = None
    threads: int | None = None
    strict: bool = False


def chosen_options(mode: str | None, given: Mapping[str, Any] | None) -> Options:
    """The options of a call of `torch.compile`. Raises UsageError for an unknown option, value or mode."""
    if mode not in (None, "default"):
        raise UsageError(
            f"mode is {mode!r}, backend tilec has one mode",
            hint="Leave it out; options={'recipe': FILE} says how to compile.",
        )
    names = [each.name for each in fields(Options)]
    for name in given or {}:
        if name not in names:
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"The options are {', '.join(names)}."
            raise UsageError(f"backend tilec has no option {name!r}", hint=hint)
    options = Options(**(given or {}))
    if options.while_compiling not in ("wait", "eager"):
        raise UsageError(f'while_compiling is {options.while_compiling!r}, it is "wait" or "eager"')
    return options
