"""Errors by the name of their Python class, and exit codes."""

from __future__ import annotations

from tilec.report.codes.page import Page

_READ = "The message says what is wrong and where; its second line says what to do."

_ERRORS: tuple[tuple[str, int, str, str, str], ...] = (
    ("TilecError", 1, "any failure that is explained; the base of all others", _READ, "cannot write 2-plan.json: ..."),
    (
        "UsageError",
        2,
        "the command was called wrongly, or names something that does not exist",
        "Correct the argument; the message has the nearest name. `tilec VERB --help` lists the options.",
        "none.onnx: no such file",
    ),
    (
        "ConfigError",
        2,
        "a device, recipe or model cannot be used as it is written",
        "Correct the line that is named; `tilec schema device|recipe` describes the keys.",
        "a100.yaml:27:5: unknown key 'capcity'\n  Did you mean 'capacity'?",
    ),
    (
        "ArtifactError",
        2,
        "an artifact is malformed, of another version, or no longer fits its inputs",
        "Run the stage that writes it again; `tilec compile` runs what is not fresh.",
        "model.tilec/2-plan.json: not a tilec artifact: it has no header",
    ),
    (
        "PlanError",
        2,
        "a plan asks for what cannot be lowered; `code` and `refusal` say what",
        "Change the plan there and run codegen again; `tilec explain CODE` has a page for the code.",
        "group_3: h1: the tile of m at l1 is 0, it must be at least 1",
    ),
    (
        "LevelTooSmallError",
        2,
        "a memory level of the device cannot hold the tile of one element",
        "Give the level more capacity in the device file, or leave it out there.",
        "tiny: level reg of tiny holds 4 bytes, the tile of one element of y needs 12",
    ),
    (
        "FeedError",
        2,
        "arrays that a session is fed do not fit the model's inputs; also a ValueError and a RuntimeError",
        "Feed the name, element type and shape that the message asks for.",
        "input 'x' has element type float64, the model has float32\n  Pass array.astype('float32').",
    ),
    (
        "VerificationMismatch",
        4,
        "results differ from the reference by more than the tolerance",
        "4-report.json has the errors per output and the first group that diverges.",
        "model.tilec: output y differs from onnxruntime: 0.031, 0.001 is allowed",
    ),
    (
        "UnsupportedError",
        5,
        "something in the input that tilec cannot do and has no fallback for",
        "Leave --strict out so that onnxruntime runs it, or change the model as the hint says.",
        "node 'where' (NonZero): its output's shape depends on the data",
    ),
    (
        "UnsupportedModelError",
        5,
        "nodes of the model do not compile and may not run on onnxruntime; `nodes` lists them",
        "`tilec import MODEL --report` lists every node with a remedy; `fallback` in the recipe allows operators.",
        "model.onnx: 1 of 2 nodes are not supported",
    ),
    (
        "UnavailableError",
        6,
        "a device, tool or optional dependency that this machine does not have",
        "`tilec doctor` tells what is missing and how to get it.",
        "a part of this model runs on onnxruntime, which cannot be imported",
    ),
    (
        "UnverifiedError",
        7,
        "nothing could be compared: no inputs can be drawn at random, or all of them are refused",
        "Give inputs that the model accepts with `tilec verify --inputs FILE.npz`, or say --allow-unverified.",
        "nothing was verified: input 'items', seq(tensor(float)), cannot be drawn at random",
    ),
    (
        "LookTooLong",
        7,
        "whether rounding explains an output takes more evaluations of the plan than verify has time for",
        "Verify at smaller sizes with --shape, or give a tolerance of your own in the recipe.",
        "whether rounding explains an output takes 8 evaluations of the plan, 2.1e+10 operations each",
    ),
    (
        "CompilerError",
        1,
        "the compiler of a session ended without saying what is wrong with the model",
        "`tilec compile MODEL --debug` shows where; with symbolic sizes the model is compiled for each set of them.",
        "model.onnx: the compiler failed: MemoryError",
    ),
    (
        "MachineError",
        1,
        "a tile program reads poison, overflows a level or leaves a window on the tile machine",
        "The plan was legal, so this is a fault of tilec unless the program was edited; keep model and plan.",
        "h1 brings smem to 262144 bytes, its capacity is 167936",
    ),
    (
        "KernelFault",
        1,
        "a kernel for a GPU races, leaves its memory or waits for ever in the emulator",
        "The plan was legal, so this is a fault of tilec unless the text was edited; keep model, plan and kernels.",
        "threads 3 and 35 access shared memory of h1_smem without a barrier between them",
    ),
    (
        "RemoteError",
        1,
        "a process that runs compiled code died or failed",
        "Run `tilec verify` on the folder: it names the group; SIGILL means another CPU than this one.",
        "the compiled model was ended by signal SIGSEGV",
    ),
    (
        "LimitExceeded",
        1,
        "a plan costs more than `tilec diff --fail-on` allows",
        "Look at the rows that grew, or raise the limit.",
        "traffic grew by 7.1 % (1000 -> 1071), 5 % is allowed",
    ),
    (
        "IncompleteSweep",
        1,
        "some combinations of `tilec report` cannot be planned; the others are in the report",
        "The lines above name each combination and why.",
        "1 of 6 combinations have no plan",
    ),
    (
        "OutputError",
        1,
        "standard output is full or gone",
        "Free some space, or write to another place.",
        "cannot write to standard output: No space left on device",
    ),
)

EXITS: dict[int, tuple[str, str]] = {
    0: ("done, or no change", "Nothing to do."),
    1: ("failed", _READ),
    2: ("usage or invalid config", _READ),
    3: (
        "changes are present (only with `diff --exit-code`)",
        "Review the changes; accept the new plan if they are meant.",
    ),
    4: ("verification mismatch", "4-report.json has the errors and the first group that diverges."),
    5: ("unsupported operator or feature", "`tilec import MODEL --report` lists the nodes with remedies."),
    6: ("device or toolchain unavailable", "`tilec doctor` tells what is missing."),
    7: (
        "nothing was verified",
        "Give inputs that the model accepts with --inputs FILE.npz, or say --allow-unverified.",
    ),
    130: ("interrupted with Ctrl-C", "Run it again: finished stages are skipped, nothing is half-written."),
    143: ("ended by SIGTERM", "Run it again: finished stages are skipped, nothing is half-written."),
}
"""Map from exit code to meaning and remedy."""


def pages() -> tuple[Page, ...]:
    """One page for every error class and exit code."""
    errors = [
        Page(name, "error", meaning, remedy, example, {"exit_code": str(code)})
        for name, code, meaning, remedy, example in _ERRORS
    ]
    exits = [
        Page(str(code), "exit", meaning, remedy, f"tilec ...; echo $?   # {code}")
        for code, (meaning, remedy) in EXITS.items()
    ]
    return (*errors, *exits)
