"""Asks for the models that a program had no time to ask for: `python -m tilec.api.left_undone REQUESTS`, as JSON, which
are pairs of a request and of files that this process got open."""

import json
import os
import sys
from contextlib import suppress

from tilec.api.held_files import HeldFile
from tilec.api.in_background import ask
from tilec.api.model_source import identified
from tilec.api.request import Request, keyed_if_known
from tilec.artifact import decode
from tilec.errors import TilecError


def main() -> None:
    """Ask for all of them; what is wrong with one, the next program tells."""
    os.nice(10)
    for request, held in json.loads(sys.argv[1]):
        with suppress(TilecError, OSError):
            files = tuple(decode(HeldFile, each) for each in held)
            ask(keyed_if_known(identified(decode(Request, request), files)))


if __name__ == "__main__":
    main()
