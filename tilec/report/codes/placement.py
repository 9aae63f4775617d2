"""Reasons of import why nodes of a model do not compile, by code."""

from __future__ import annotations

from tilec.report.codes.page import Page

_SHAPES = "Bind the sizes: --shape SYMBOL=SIZE, or `shapes` in the recipe."

_PAGES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "foreign-operator",
        "the operator belongs to a domain that is not ONNX's",
        "Export the model with ONNX's own operators.",
        "operators of domain 'ai.onnx.ml' are not known",
        (r"operators of domain .* are not known",),
    ),
    (
        "unknown-operator",
        "ONNX has no operator of that name; nothing can run it",
        "Check its name and domain; the message has the nearest one.",
        "ONNX has no operator 'Rellu'",
        (r"ONNX has no operator .*",),
    ),
    (
        "no-expression",
        "the operator has no tensor expression",
        "Compute it outside the model, or let onnxruntime run it.",
        "no tensor expression for this operator yet",
        (r"no tensor expression for this operator yet",),
    ),
    (
        "opset",
        "the model, or a function in it, uses an opset that tilec does not read",
        "Convert it: onnx.version_converter.convert_version(model, OPSET).",
        "tilec reads opsets up to 26, not 27",
        (
            r"tilec reads opsets .*",
            r"the model uses opset .*",
            r"the function .* uses opset .*",
            r"the model has version .*",
        ),
    ),
    (
        "data-dependent-shape",
        "the shape of an output depends on the data",
        "Make the deciding input a constant, or mask elements instead of removing them.",
        "its output's shape depends on the data",
        (r"its output's shape depends on the data", r"sampling_ratio 0 makes .*"),
    ),
    (
        "computed-operand",
        "an input that must be known at compile time is computed from the model's inputs",
        "Make it a constant of the model.",
        "input 1 must be known at compile time and is computed from the model's inputs",
        (
            r".* must be known at compile time and is computed from the model's inputs",
            r"the condition is computed from the model's inputs, and .*",
            r"the step is not a constant other than 0",
            r"codes that are no constant",
        ),
    ),
    (
        "symbolic-size",
        "something that must be a number depends on a size that is not bound",
        _SHAPES,
        "input 1 depends on a symbolic size: batch * 12",
        (
            r".* depends? on (a )?symbolic sizes?.*",
            r"a symbolic .*",
            r"a weight of symbolic shape .*",
            r"a transform of symbolic length",
            r"antialias at a scale that depends on symbols",
            r"keep_aspect_ratio_policy .* over symbols",
            r"whether .* depends on .*",
            r"its expressions are nested too deep",
            r"a bias for symbolic channels",
            r"heads of a symbolic size",
            r"a dimension times .*, which is rounded before the product",
            r"the condition of a loop whose trip count depends on sizes is computed in its body",
            r"carried value .* changes its shape or type",
        ),
    ),
    (
        "element-type",
        "a value is no tensor of numbers, or of an element type that tilec does not compute with",
        "Cast to a float, integer or bool type; strings, sequences and maps stay on onnxruntime.",
        "element type STRING (attribute 'to')",
        (
            r"element type .*",
            r"only tensors can be inputs, this is .*",
            r"the rank of the input is unknown",
            r"a sequence of .*",
            r"n-grams of strings",
            r"a constant given as .*",
            r"sparse constants in .*",
            r"sparse values of type .*",
            r"nothing is computed with .*",
            r"a carried value is no tensor",
            r"an output of the body is no tensor",
            r"elements of .* bits",
        ),
    ),
    (
        "reads-outside",
        "it reads or makes a value that only onnxruntime can hold",
        "Mend the node that makes the value; this one then compiles, too.",
        "it reads 'kept', whose shape depends on the data",
        (
            r"it reads .*",
            r"it makes a sequence or codes that leave the compiled part",
            r".* goes from one part on onnxruntime to another, and its type is not known",
            r"output .* is made by no node",
        ),
    ),
    (
        "reference-only",
        "the result is defined by one implementation only: random generators, decoders of image files",
        "Do it outside the model, or let onnxruntime run it.",
        "random numbers are kept to the reference: a seed means its generator",
        (r"random numbers .*", r"decoding image files .*", r"dropout in training mode: .*"),
    ),
    (
        "too-long",
        "what it unfolds to would take too long to compile, or more operations than the operator itself",
        "Make the loop, sequence or window shorter, or let onnxruntime run it.",
        "unrolling 128 steps takes 1024 tensor expressions, the limit is 512",
        (
            r"unrolling .*",
            r"functions, branches and loops unfold to more than .*",
            r"nodes stand more than .* deep inside each other",
            r"up to .* parts",
            r"more than .* samples a bin",
            r"the tensor expression .*would take .*",
        ),
    ),
    (
        "form",
        "this form of the operator has no tensor expression: its rank, factors or overlaps",
        "Write it in another form, or let onnxruntime run it.",
        "4 spatial dimensions",
        (
            r".* dimensions",
            r"a factor of .* for .*",
            r"a determinant of .*",
            r"n-grams that share a place in the output",
            r".* for .* batches",
            r"a bias of packed projections",
            r"a shared cache buffer, beams or scores as an output",
            r"mean and inverse deviation as outputs",
            r"normalised queries, lengths of chunks or scores as an output",
            r"a quantised cache of a window",
            r"caches of .* bits in this type",
            r"weights that are no integers, or in the order of a GPU's kernels",
            r"weights of experts apart from their scores, or scales of activations",
            r"the activation .*",
            r"the attribute .* is .*",
            r"the input g_idx",
        ),
    ),
    (
        "inner-node",
        "a node inside a function, branch or loop does not compile",
        "See the reason behind the colon: it has a code of its own.",
        "NonZero inside of it: its output's shape depends on the data",
        (r".* inside of it: .*",),
    ),
)


def pages() -> tuple[Page, ...]:
    """One page for each kind of reason."""
    return tuple(
        Page(code, "placement", meaning, remedy, example, says=says) for code, meaning, remedy, example, says in _PAGES
    )
