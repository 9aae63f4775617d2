"""The line of a model: what spills, and the time that it takes."""

from tests.gpu_zoo.compiled import Result
from tests.gpu_zoo.figures import COLUMNS, row


def cells(result: Result) -> dict[str, str]:
    return dict(zip(COLUMNS, row("net", "f16", "a100", result).strip("| ").split(" | "), strict=True))


def test_kernels_that_spill_are_named_with_their_share_of_the_time() -> None:
    kernels = (
        {"symbol": "conv", "block": 256, "registers": 255, "spilled_bytes": 32},
        {"symbol": "add", "block": 64, "registers": 20, "spilled_bytes": 0},
    )
    result = Result(kernels, {"conv": 3_000_000, "add": 1_000_000}, groups=2, seconds={"schedule": 2.6})
    assert not result.right
    found = cells(result)
    assert (found["spilling"], found["their time"], found["below 128 threads"]) == ("conv 32 B", "75 %", "25 %")
    assert (found["type"], found["predicted us"], found["most registers"]) == ("f16", "4.0", "255")
    assert (found["schedule s"], found["codegen s"], found["verify s"]) == ("3", "-", "-")


def test_without_a_compiler_nothing_is_said_of_registers() -> None:
    result = Result(({"symbol": "add", "block": 128},), {"add": 0}, groups=1)
    assert result.right
    found = cells(result)
    assert (found["spilling"], found["most registers"], found["their time"]) == ("-", "-", "-")
    assert cells(Result(error="error: no"))["verdict"] == "error: no"
