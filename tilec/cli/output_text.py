"""Text on standard output where its encoding lacks a letter: an escape that JSON has as well."""

import codecs
import sys
from io import TextIOWrapper

ESCAPED = "tilec.escaped"
"""Name of the error handler."""


def escape_unencodable() -> None:
    """Write letters that the encoding of standard output lacks as `\\uXXXX`, which leaves JSON what it is."""
    codecs.register_error(ESCAPED, _escaped)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """The escapes of the letters at fault, and the place where encoding goes on; of a letter beyond 16 bits those of
    its surrogate pair."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    words = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{words[i : i + 2].hex()}" for i in range(0, len(words), 2)), error.end
