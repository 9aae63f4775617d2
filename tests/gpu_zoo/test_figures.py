"""The line of a model: what spills, and the time that it takes."""

from tests.gpu_zoo.compiled import Result
from tests.gpu_zoo.counted import shares
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


def test_kernels_near_their_least_transfers_count_by_their_time() -> None:
    def counts(read: int, ideal: int, planned: int, wavefronts: int) -> dict[str, object]:
        ways = {"read": {"counted": read, "ideal": ideal, "planned": planned}}
        return {"sectors": ways, "wavefronts": {"counted": wavefronts, "ideal": 100}}

    kernels = {"a": counts(105, 100, 105, 111), "b": counts(106, 100, 100, 110), "c": counts(0, 0, 0, 100)}
    assert shares(kernels, {"a": 60, "b": 30, "c": 10, "not run": 900}) == {
        "sectors": 0.7, "wavefronts": 0.4, "planned": 0.7
    }  # fmt: skip
    assert shares({"a": {"sectors": counts(1, 1, 1, 0)["sectors"]}}, {"a": 1}) == dict.fromkeys(
        ("sectors", "wavefronts", "planned"), 1.0
    )
    assert shares({}, {"a": 1}) == {"sectors": 0.0, "wavefronts": 0.0, "planned": 0.0}


def test_without_a_compiler_nothing_is_said_of_registers() -> None:
    result = Result(({"symbol": "add", "block": 128},), {"add": 0}, groups=1)
    assert result.right
    found = cells(result)
    assert (found["spilling"], found["most registers"], found["their time"]) == ("-", "-", "-")
    assert cells(Result(error="error: no"))["verdict"] == "error: no"
