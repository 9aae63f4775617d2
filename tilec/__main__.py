"""`python -m tilec`: the command line."""

from tilec.cli import main

if __name__ == "__main__":
    main()
