"""Measurements on a GPU that is there for some minutes: `python tests/on_gpu/run.py FOLDER --out OUT`."""
