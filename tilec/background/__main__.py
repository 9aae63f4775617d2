"""`python -m tilec.background CACHE`: the compiler of a cache; sessions start it."""

import sys
from contextlib import suppress
from pathlib import Path

from tilec.background.compiler import Compiler
from tilec.background.queue import Queue

if __name__ == "__main__":
    with suppress(OSError):  # a cache that cannot be written any more: whoever asks next starts another one
        Compiler(Queue(Path(sys.argv[1]))).serve()
