"""Who hands tensors to whom."""

from report.plans import base, plan

from tilec.ir.graph import Call, Port
from tilec.report.html.wiring import Item, Link, wiring


def test_groups_inputs_and_outputs_are_items_and_weights_are_none():
    found = wiring(base())
    assert found.items == (
        Item("input", 0),
        *(Item("group", n) for n in range(3)),
        Item("output", 0),
    )
    assert found.links == (Link(0, 1, ("x",)), Link(1, 2, ("r",)), Link(2, 3, ("g",)), Link(3, 4, ("y",)))


def test_a_call_stands_between_what_it_reads_and_what_reads_it():
    called = plan(*base().groups, calls=(Call("c.onnx", (Port("a", "g"),), (Port("b", "extra"),)),))
    found = wiring(called)
    assert found.items[4] == Item("call", 0)
    assert Link(2, 4, ("g",)) in found.links


def test_several_tensors_of_one_maker_are_one_link_and_an_input_may_be_an_output():
    given = plan(*base().groups, outputs=(Port("output", "y"), Port("same", "x"), Port("again", "y")))
    found = wiring(given)
    assert Link(0, 5, ("x",)) in found.links
    assert Link(3, 6, ("y",)) in found.links


def test_an_empty_plan():
    assert wiring(plan(inputs=(), outputs=())).items == ()
