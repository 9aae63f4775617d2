"""Options of `torch.compile(model, backend="tilec", options={...})`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import chosen_while_compiling
from tilec.errors import UsageError, did_you_mean
from tilec.spec.source import HOST


@dataclass(frozen=True)
class Options:
    """What a user may choose.

    device, recipe   names or files, as the command line takes them (`host`, for a graph on a GPU: that GPU)
    while_compiling  `wait` for the compiler, or let PyTorch serve meanwhile (`eager`; None: what TILEC_WHILE_COMPILING
                     or the recipe says, else `eager`, on another device than this machine `wait`)
    specialize       whether sizes that are seen often get models of their own: `off`, `likely`
    cache            folder of compiled models (None: that of the user)
    threads          threads that take part in a run (None: PyTorch's number)
    weights          how closely parameters are looked at before each call: `sampled`, `full`, `frozen` (not at all)
    strict           raise where PyTorch would run a graph or an operator that tilec does not compile
    """

    device: str = "host"
    recipe: str | None = None
    while_compiling: str | None = None
    specialize: str | None = None
    cache: str | None = None
    threads: int | None = None
    weights: str = "sampled"
    strict: bool = False

    @cached_property
    def is_eager(self) -> bool:
        """Whether PyTorch serves while the compiler works. Raises UsageError for a wrong variable, ConfigError for a
        wrong recipe."""
        if self.while_compiling is not None:
            return self.while_compiling == "eager"
        return chosen_while_compiling(None, self.recipe, "fallback" if self.device == HOST else "wait") == "fallback"


MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Modes of `torch.compile`; there is one here."""

_CHOICES = {
    "while_compiling": (None, "wait", "eager"),
    "specialize": (None, "off", "likely"),
    "weights": ("sampled", "full", "frozen"),
    "strict": (False, True),
}


def chosen_options(mode: str | None, given: Mapping[str, Any] | None) -> Options:
    """The options of a call of `torch.compile`; those of inductor are warned about once and have no effect.

    Raises UsageError for an unknown option, value or mode.
    """
    if mode is not None and mode not in MODES:
        raise UsageError(f"mode is {mode!r}", hint=f"The modes are {', '.join(MODES)}; backend tilec treats all alike.")
    if mode not in (None, "default"):
        warn_once(f"mode {mode!r} has no effect: backend tilec has one mode")
    names = [each.name for each in fields(Options)]
    known = {name: value for name, value in (given or {}).items() if name in names}
    for name in (given or {}).keys() - known.keys():
        if not _is_of_inductor(name):
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"The options are {', '.join(names)}."
            raise UsageError(f"backend tilec has no option {name!r}", hint=hint)
        warn_once(f"option {name!r} is inductor's: it has no effect in backend tilec")
    options = Options(**known)
    for name, choices in _CHOICES.items():
        value = getattr(options, name)
        if value not in choices:
            words = " or ".join(repr(choice) for choice in choices if choice is not None)
            raise UsageError(f"{name} is {value!r}, it is {words}")
    return options


def _is_of_inductor(name: str) -> bool:
    from torch._inductor import config

    return name.replace("-", "_") in config.get_config_copy()
