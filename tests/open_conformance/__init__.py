"""ONNX's node cases with every size open, compiled once and run at five: `python -m tests.open_conformance --help`."""
