"""What users call groups, edges and nodes."""

import pytest
from report.plans import base

from tilec.analysis.explain.names import edge_named, group_named, node_named
from tilec.errors import UsageError


@pytest.mark.parametrize(("text", "name"), [("1", "r"), ("r", "r"), ("h", "r"), ("/MatMul_h", "r"), ("3", "y")])
def test_groups(text, name):
    assert group_named(base(), text).name == name


@pytest.mark.parametrize(
    ("text", "hint"),
    [("0", "numbered 1 to 3"), ("4", "numbered 1 to 3"), ("zzz", "There are r, g, y."), ("yy", "Did you mean 'y'?")],
)
def test_groups_that_are_none(text, hint):
    with pytest.raises(UsageError) as error:
        group_named(base(), text)
    assert hint in str(error.value)


@pytest.mark.parametrize(("text", "ends"), [("r->g", ("r", "g")), (" r -> g ", ("r", "g")), ("r", ("r", "g"))])
def test_edges(text, ends):
    assert edge_named(base(), text) == ends


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("g->r", "It is the other way round: r->g."),
        ("h->y", "'h' is read by r."),
        ("h->", "Write it like A->B"),
        ("", "Write it like A->B"),
        ("g", "'g' has 2 readers"),
        ("y", "it is an output of the model"),
        ("x->h", "it is an input of the model"),
        ("w->h", "it is a constant of the model"),
        ("topp->y", "Did you mean 'top'?"),
    ],
)
def test_edges_that_are_none(text, said):
    with pytest.raises(UsageError) as error:
        edge_named(base(), text)
    assert said in str(error.value)


def test_nodes():
    assert node_named(base(), "h") == "h"
    assert node_named(base(), "/Softmax_top") == "top"
    with pytest.raises(UsageError, match="'w' is no node of a group: it is a constant"):
        node_named(base(), "w")
    with pytest.raises(UsageError, match="Did you mean 'top'"):
        node_named(base(), "tpo")
