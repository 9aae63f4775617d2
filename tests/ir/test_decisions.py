"""Operations that follow the forms of decisions: whatever is named is renamed, listed and signed."""

from tilec.ir.decisions import Leaf, Renaming, depth, entries, fact, leaves, renamed, signed, tiled_like
from tilec.ir.expr import Const
from tilec.ir.plan import Shared, Variant
from tilec.ir.text import parse_expr

RESCALE = "z[m] * exp(before(x[m]) - x[m])"
VARIANT = Variant(
    Const(True),
    ("dram", "l2"),
    tiles={"l2": {"z": {"m": 4, "a": 2}}},
    steps={"l2": {"o": {"k": 8}}},
    kernel="k",
    order={"l2": {"z": ("m",)}},
    loads={"x": ("l2",)},
    layouts={"l2": {"x": (1, 0)}},
    copies={"l2": {"x": 2}},
    shared={"z": Shared("o", {"t": "k"}, parse_expr(RESCALE))},
    held={"l2": {"z": "f32", "o": "f32"}},
    streamed=("z", "o"),
)
RENAMING = Renaming(
    {"z": "t2", "o": "t3", "x": "t1"}, {"z": {"m": "i0", "t": "i1", "a": "i2"}, "o": {"k": "i2", "m": "j"}}
)
OTHER = Variant(
    Const(True),
    ("dram", "l2"),
    tiles={"l2": {"t2": {"i0": 4, "i2": 2}}},
    steps={"l2": {"t3": {"i2": 8}}},
    kernel="k",
    order={"l2": {"t2": ("i0",)}},
    loads={"t1": ("l2",)},
    layouts={"l2": {"t1": (1, 0)}},
    copies={"l2": {"t1": 2}},
    shared={"t2": Shared("t3", {"i1": "i2"}, parse_expr("t2[i0] * exp(before(t1[i0]) - t1[i0])"))},
    held={"l2": {"t2": "f32", "t3": "f32"}},
    streamed=("t2", "t3"),
)


def test_every_name_is_replaced_by_that_of_its_kind() -> None:
    assert renamed(VARIANT, RENAMING) == OTHER
    assert renamed(VARIANT, Renaming({})) == VARIANT


def test_entries_are_facts_by_level_and_subject() -> None:
    facts = {(e.decision.kind, e.level, e.subject): fact(e) for e in entries(VARIANT)}
    assert facts == {
        ("tile", "l2", "z"): {"a": 2, "m": 4},
        ("step", "l2", "o"): {"k": 8},
        ("order", "l2", "z"): ["m"],
        ("load", "", "x"): ["l2"],
        ("layout", "l2", "x"): [1, 0],
        ("copies", "l2", "x"): 2,
        ("shared", "", "z"): ["o", "t with k", RESCALE],
        ("held", "l2", "z"): "f32",
        ("held", "l2", "o"): "f32",
        ("streamed", "", "z"): "past the caches",
        ("streamed", "", "o"): "past the caches",
    }
    assert {e.decision.kind: depth(e.decision) for e in entries(VARIANT)} == {
        **dict.fromkeys(("tile", "step", "order", "layout", "copies", "held"), 2),
        **dict.fromkeys(("load", "shared"), 1),
        "streamed": 0,
    }


def test_leaves_know_whose_iterator_a_name_is() -> None:
    def of(kind: str) -> list[Leaf]:
        return [leaf for leaf in leaves(VARIANT) if leaf.decision.kind == kind]

    assert [(x.value, x.owner) for x in of("shared")][:4] == [("z", ""), ("o", "z"), ("t", "z"), ("k", "o")]
    assert [(x.value, x.level, x.subject, x.owner, x.iterator) for x in of("step")] == [
        ("l2", "", "", "", ""),
        ("o", "l2", "", "", ""),
        ("k", "l2", "o", "o", ""),
        (8, "l2", "o", "o", "k"),
    ]


def test_the_order_of_iterators_and_no_other_is_signed() -> None:
    data = signed(VARIANT)
    assert data["tiles"] == {"l2": {"z": [["m", 4], ["a", 2]]}}
    assert data["streamed"] == ["o", "z"]
    assert "units" in data
    plain = signed(Variant(Const(True), ("dram",), {}, {}, "k"))
    assert set(plain) == {"tiles", "steps", "order", "tails", "loads", "layouts", "units"}


def test_a_node_that_is_tiled_like_another() -> None:
    other = tiled_like(VARIANT, "z", "new")
    assert (other.tiles, other.order, other.steps) == (
        {"l2": {"new": {"m": 4, "a": 2}}},
        {"l2": {"new": ("m",)}},
        {},
    )
    assert other.loads == VARIANT.loads
