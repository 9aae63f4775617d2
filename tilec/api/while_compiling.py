"""What serves calls while their model is compiled: the framework in whose place tilec stands, or nothing (A19)."""

import os
from typing import Literal, cast, get_args

from tilec.api.request import WHILE_COMPILING_VARIABLE
from tilec.errors import UsageError

WhileCompiling = Literal["wait", "fallback"]
"""Wait for the compiler, or let the framework serve until it is done."""

Meanwhile = Literal["wait", "fallback", "caller"]
"""The same; the framework may be that which calls, and then gets a NotReadyError."""


class NotReadyError(Exception):
    """The compiler still works at the model; whoever calls has something that serves meanwhile."""


def chosen_while_compiling(asked: str | None, recipe: str | None, default: WhileCompiling) -> WhileCompiling:
    """What is asked for, else what the variable says, the recipe, the default. Raises UsageError for another word,
    ConfigError for a wrong recipe."""
    for name, word in (
        ("while_compiling", asked),
        (WHILE_COMPILING_VARIABLE, os.environ.get(WHILE_COMPILING_VARIABLE)),
    ):
        if word in get_args(WhileCompiling):
            return cast("WhileCompiling", word)
        if word:
            raise UsageError(f'{name} is {word!r}, it is "wait" or "fallback"')
    if recipe is None:
        return default
    from tilec.spec.effective import recipe_without_device

    return recipe_without_device(recipe, {}, {}).while_compiling or default
