"""Text as tokens and back, by the `tokenizer.json` beside a model; the package `tokenizers` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilec.errors import ConfigError, UnavailableError, UsageError
from tilec.extras import install

FILE = "tokenizer.json"


class Text:
    """A tokenizer. Raises UsageError where the folder has none, UnavailableError without the package, ConfigError for a
    file that it does not read."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        if not path.is_file():
            raise UsageError(f"there is no {FILE} in this folder", str(folder), "Give tokens: --prompt-ids 1,2,3.")
        try:
            import tokenizers
        except ImportError as error:
            hint = f"Run `{install('generate')}`, or give tokens: --prompt-ids 1,2,3."
            raise UnavailableError("text needs the package tokenizers", hint=hint) from error
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises Exception itself
            raise ConfigError(f"tokenizers cannot read it: {error}", str(path), "Export the model again.") from error

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, with those that the tokenizer puts around it."""
        return list(self._tokenizer.encode(text).ids)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        return str(self._tokenizer.decode(list(tokens)))


class Stream:
    """Pieces of text as tokens come: a letter that several tokens spell is told when it is whole."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens: list[int] = []
        self._told = ""

    def added(self, token: int) -> str:
        """What a further token adds."""
        self._tokens.append(token)
        whole = self._text.text(self._tokens)
        if whole.endswith("\ufffd") or not whole.startswith(self._told):
            return ""
        piece, self._told = whole[len(self._told) :], whole
        return piece
