"""The closed list of lint rules, each with severity, meaning, fix and example."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tilec.spec.contradictions import FIXES

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Rule:
    """An "error" is wrong, a "warning" legal but suspicious. `meaning` is a sentence without its full stop, `fix` an
    instruction, `example` the text of a finding."""

    code: str
    severity: Severity
    meaning: str
    fix: str
    example: str


_RULES = (
    Rule(
        "invalid",
        "error",
        "the file is not what it should be: a value of the wrong kind, a missing key, damaged data",
        "Correct the line; `tilec schema device|recipe` describes the keys, the stage writes an artifact anew.",
        "expected kind 'compile', found 'compil'",
    ),
    Rule(
        "unknown-key",
        "error",
        "a key that nothing reads",
        "Correct its name; the message has the nearest one.",
        "unknown key 'capcity', did you mean 'capacity'",
    ),
    Rule(
        "unsourced",
        "warning",
        "a number of a device has no comment that says where it is from",
        "Write the source behind it: a datasheet, a measurement, or that it is assumed.",
        "level l2: capacity 40MiB has no source",
    ),
    Rule(
        "capacity-below-transaction",
        "error",
        "a memory level holds less than moves at once",
        FIXES["capacity-below-transaction"],
        "level reg holds 64 bytes, one transaction moves 128",
    ),
    Rule(
        "slower-towards-core",
        "warning",
        "a level delivers fewer bytes per second than the one below it",
        "Check both: levels are listed lowest first, and `total` counts all instances of a level.",
        "level l2 delivers 1 TB/s in total, dram below it 2 TB/s",
    ),
    Rule(
        "bandwidth-exceeds-total",
        "warning",
        "what one instance or one reader draws is more than all together get",
        "Check the unit: `total` counts all instances, `instance` and `reader` one.",
        "level l2 gives a reader 2 TB/s of 1 TB/s in total",
    ),
    Rule(
        "pool-too-small",
        "error",
        "a level needs more than the pool has that it takes its bytes from",
        FIXES["pool-too-small"],
        "level smem takes 228KiB of its pool l1, which has 164KiB",
    ),
    Rule(
        "unused-pool",
        "warning",
        "no level takes its bytes from a pool",
        "Name the pool in the levels that share it, or take it out.",
        "no level takes its bytes from pool l1",
    ),
    Rule(
        "odd-alignment",
        "warning",
        "an alignment is no power of two",
        "Check the number: addresses of real memories are aligned to powers of two.",
        "level dram is aligned to 48 bytes",
    ),
    Rule(
        "smaller-below",
        "warning",
        "a level holds less than one instance of the level above it",
        "Check both capacities: levels are listed lowest first, and each has the capacity of one instance.",
        "level l2 holds 32KiB, less than one smem above it, 64KiB",
    ),
    Rule(
        "unknown-scope",
        "warning",
        "a compute unit belongs to a scope that no level has",
        "Name the scope of a level, or leave it out.",
        "unit fma belongs to the scope 'wrap', did you mean 'warp'",
    ),
    Rule(
        "unknown-backend",
        "warning",
        "no back end generates code for a device",
        "Correct the name or install the back end; `none` is for devices that get plans and tile programs alone.",
        "no back end is called 'cdua', did you mean 'cuda'",
    ),
    Rule(
        "unknown-name",
        "error",
        "a recipe names a device, model, level or file that is not there",
        FIXES["unknown-name"],
        "no device is called 'a1000', did you mean 'a100'",
    ),
    Rule(
        "unknown-operator",
        "warning",
        "an operator that may run on onnxruntime is none of ONNX's",
        "Correct its name; operators of other domains always may.",
        "ONNX has no operator 'NonMaxSupression', did you mean 'NonMaxSuppression'",
    ),
    Rule(
        "loose-tolerance",
        "warning",
        "the tolerance of verify lets wrong results pass",
        "Leave verify.tolerance out: it then follows from types and lengths of reductions.",
        "verify.tolerance is 0.5 of the largest value",
    ),
    Rule(
        "few-seeds",
        "warning",
        "all random inputs have mean 0, around which errors cancel",
        "Give two seeds or more: every second draw has mean 3.",
        "verify.seeds has one seed",
    ),
    Rule(
        "edited",
        "warning",
        "an artifact was changed by hand after a stage wrote it",
        "Nothing to mend if it is meant; `tilec diff` against a new one shows the change.",
        "the plan was edited",
    ),
    Rule(
        "stale-costs",
        "warning",
        "the costs that a plan says are not those that its decisions come to: of before an edit, or of another version",
        "Nothing to mend if the edit is meant: all that read the plan count them anew, `tilec diff` against the plan "
        "before shows what it alters, `tilec schedule` writes a new one.",
        "the decisions of group y come to 11.2 us predicted, not 9.5 us; 4,096 bytes read at smem, not 1,024",
    ),
    Rule(
        "illegal",
        "error",
        "an artifact breaks a rule, so that the next stage refuses it",
        "Undo the edit, or make the artifact anew.",
        "y reads h9, which is not computed before it",
    ),
    Rule(
        "falls-back",
        "warning",
        "nodes of the model run on onnxruntime",
        "`tilec import MODEL --report` lists them with remedies.",
        "3 of 412 nodes run on onnxruntime (NonMaxSuppression)",
    ),
    Rule(
        "idle-variant",
        "warning",
        "a variant of a group runs at no size: the guards before it hold wherever its own does",
        "Take it out, or order the variants so that the most special guard stands first.",
        "group y: no size is served by the variant for seq >= 8",
    ),
    Rule(
        "padding",
        "warning",
        "tiles of a group that do not divide their extents compute many elements twice",
        "Choose tiles that divide the extents, or `tails: clip` for the node.",
        "tiles of y at smem compute 1.6x its elements (m: 5 x 64 for 200)",
    ),
    Rule(
        "uncoalesced",
        "warning",
        "a group moves far more bytes in whole transactions than it needs",
        "Make the innermost tile at least a transaction wide, or store the tensor in another order.",
        "4.0 MiB at dram take 32.0 MiB of transactions (8.0x)",
    ),
    Rule(
        "far-from-bound",
        "warning",
        "a group moves many times the least data movement known",
        "`tilec explain PLAN --group G` tells why; larger tiles or another fusion may come closer.",
        "25.1 MiB move at dram, 3.2 MiB are known to do (7.8x)",
    ),
    Rule(
        "mismatch",
        "error",
        "the compiled model was verified and is wrong",
        "`tilec verify --reduce BUILD -o DIR` makes the smallest model that fails so.",
        "the verdict is mismatch; first diverging group: h1 (relu)",
    ),
    Rule(
        "unverified",
        "warning",
        "nothing has compared the compiled model with the reference",
        "`tilec verify BUILD --inputs FILE.npz` compares on inputs that cannot be drawn at random.",
        "input 'items', seq(tensor(float)), cannot be drawn at random",
    ),
)

RULES: MappingProxyType[str, Rule] = MappingProxyType({rule.code: rule for rule in _RULES})
"""Map from code to rule."""
