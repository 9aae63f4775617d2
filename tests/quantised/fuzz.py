"""`python -m quantised.fuzz N [SEED]`: N random quantised models, bit by bit; failures are reduced and kept."""

from __future__ import annotations

import sys

from fuzz.__main__ import main

from quantised.draw import draw

if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:]), draw=draw), 1))
