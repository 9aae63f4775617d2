"""What processes of `verify` and `bench` import, as they do: without PyTorch, whose memory makes each fork slow."""

from tilec import own_process

own_process.begin()
with own_process.without_torch():
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import tvm  # noqa: F401

    import tilec.bench.candidate
    import tilec.codegen.driver
    import tilec.runtime.cpu.library  # noqa: F401
