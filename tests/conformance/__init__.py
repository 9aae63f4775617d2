"""The cases of onnx.backend.test, run in crash-proof workers: `python -m tests.conformance --help`."""
