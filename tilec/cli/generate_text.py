"""Prompts of `tilec generate` as they are given, and what is made of them: streamed, or a line for each."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tilec.artifact import Json
from tilec.errors import UsageError, several

if TYPE_CHECKING:
    from tilec.decoding import Generation
    from tilec.decoding.text import Text


def prompts_of(model: Path, texts: Sequence[str], ids: Sequence[str]) -> tuple[list[list[int]], "Text | None"]:
    """The tokens of prompts that are given as text, with what tells text, or as tokens. Raises UsageError for none and
    for both kinds."""
    from tilec.decoding.text import Text

    if bool(texts) == bool(ids):
        problem = "there are prompts of text and of tokens" if texts else "there is no prompt"
        raise UsageError(problem, hint="Give --prompt TEXT or --prompt-ids 1,2,3, or several of one kind.")
    if ids:
        return [ids_of(each, "--prompt-ids") for each in ids], None
    text = Text(model if model.is_dir() else model.parent)
    return [text.tokens(each) for each in texts], text


def ids_of(text: str, flag: str) -> list[int]:
    """Tokens with commas between them."""
    words = [word for word in re.split(r"[,\s]+", text) if word]
    for word in words:
        if not word.isdigit():
            raise UsageError(f"{word!r} is no token", flag, "Write numbers with commas between them: 1,306,4658.")
    return [int(word) for word in words]


def seeds_of(given: Sequence[int] | None, prompts: int) -> list[int]:
    """A seed for each prompt: those that are given, or the numbers from the one that is given."""
    seeds = list(given or (0,))
    if len(seeds) == 1:
        return [seeds[0] + n for n in range(prompts)]
    if len(seeds) != prompts:
        problem = f"there are {several(len(seeds), 'seed')} for {several(prompts, 'prompt')}"
        raise UsageError(problem, "--seed", "Give one, or one for each prompt.")
    return seeds


class Spoken:
    """Tells tokens on standard output: of one prompt as they come, of several a line for each when they end. What was
    made stays whole lines where it ends early."""

    def __init__(self, text: "Text | None", prompts: int, quiet: bool) -> None:
        from tilec.decoding.text import Stream

        self._text, self._quiet = text, quiet
        self._made: list[list[int]] = [[] for _ in range(prompts)]
        self._stream = Stream(text) if text is not None and prompts == 1 else None

    def __enter__(self) -> "Spoken":
        return self

    def add(self, step: Sequence[int | None]) -> None:
        """The next token of each sequence that goes on."""
        for made, token in zip(self._made, step, strict=True):
            made.extend([] if token is None else [token])
        if len(self._made) == 1 and not self._quiet:
            (made,) = self._made
            token = made[-1]
            _tell(f"{' ' if len(made) > 1 else ''}{token}" if self._stream is None else self._stream.added(token))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._quiet or not any(self._made) or isinstance(error, BrokenPipeError):
            return
        _tell("\n" if len(self._made) == 1 else "".join(f"{self._line(made)}\n" for made in self._made))

    def _line(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens)) if self._text is None else self._text.text(tokens)

    def json(self, told: "Generation") -> dict[str, Json]:
        """What was made as data."""
        rows = [self._json(row) for row in told.rows]
        return rows[0] if len(rows) == 1 else {"sequences": [*rows]}

    def _json(self, tokens: Sequence[int]) -> dict[str, Json]:
        spelled: dict[str, Json] = {} if self._text is None else {"text": self._text.text(tokens)}
        return {"tokens": [*tokens], **spelled}


def _tell(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
