"""Errors of a compiler that is another process."""

from tilec import errors
from tilec.errors import TilecError


class CompilerError(TilecError):
    """The compiler ended without saying what is wrong with the model."""


def error_of(kind: str, message: str, place: str | None, hint: str | None) -> TilecError:
    """The error of a kind, which is the name of its class."""
    found = getattr(errors, kind, None)
    cls = found if isinstance(found, type) and issubclass(found, TilecError) else TilecError
    return (CompilerError if kind == CompilerError.__name__ else cls)(message, place, hint)


def as_kind(error: TilecError) -> dict[str, str | None]:
    """What `error_of` takes, for JSON."""
    kind = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "tilec.errors")
    return {"kind": kind, "message": error.message, "place": error.place, "hint": error.hint}
