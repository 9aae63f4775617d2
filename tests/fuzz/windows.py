"""Operators over sliding windows: convolutions in one to three dimensions, their transposes, pooling, resizing."""

from __future__ import annotations

from typing import Any

from fuzz.sketch import FLOATS, Sketch
from fuzz.table import draws, types_of


def _window(s: Sketch, shape: tuple[int, ...], dilates: bool = True) -> dict[str, Any] | None:
    """Kernel, strides, dilations and padding that leave at least one window; None when the drawn ones do not."""
    rank = len(shape)
    kernel = [s.choice((1, 1, 2, 3, 3, 5)) for _ in range(rank)]
    strides = [s.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    dilations = [s.choice((1, 1, 1, 2, 3)) if dilates else 1 for _ in range(rank)]
    window: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if any(d > 1 for d in dilations):
        window["dilations"] = dilations
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    # onnxruntime leaves dilations out of the sum, and windows with gaps between them have negative padding.
    if s.chance(0.2) and "dilations" not in window and all(k >= n for k, n in zip(kernel, strides, strict=True)):
        window["auto_pad"] = s.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        same = window["auto_pad"] != "VALID"
        return window if same or all(n >= span for n, span in zip(shape, spans, strict=True)) else None
    low, high = ([s.integer(0, k - 1) if s.chance(0.6) else 0 for k in kernel] for _ in range(2))
    if any(low) or any(high):
        window["pads"] = [*low, *high]
    sizes = [n + a + b for n, a, b in zip(shape, low, high, strict=True)]
    return window if all(n >= span for n, span in zip(sizes, spans, strict=True)) else None


def _image(s: Sketch, types: tuple[str, ...]) -> str:
    """A batch of images with one to three spatial dimensions."""
    if s.chance(0.5):
        return s.pick(types, 3, 5, where=lambda n: 0 not in s.dims(n) and s.dims(n)[1] <= 48)
    rank = s.choice((1, 2, 2, 2, 3))
    sides = {1: (5, 9, 17, 32), 2: (1, 4, 7, 9, 14), 3: (2, 3, 5)}[rank]
    channels = s.choice((1, 2, 3, 4, 6, 8, 16, 17, 32))
    if s.large:
        sides, channels = {1: (100, 128), 2: (14, 28, 31), 3: (5, 9)}[rank], s.choice((3, 32, 48, 64, 65))
    return s.new(s.choice(types), (s.integer(1, 2), channels, *(s.choice(sides) for _ in range(rank))))


@draws(5)
def convolution(s: Sketch) -> None:
    a = _image(s, types_of("Conv", s.opset))
    shape, kind = s.dims(a), s.type(a)
    window = _window(s, shape[2:])
    if window is None or 0 in shape:
        return
    padded = "pads" in window or window.get("auto_pad", "VALID") != "VALID"
    if s.special and (padded or (kind == "f64" and "dilations" in window)):
        # Infinite weights meet padding, or zeros between the taps: onnx's evaluator, the only judge of f64, has those.
        return
    groups = s.choice([g for g in (1, 1, 1, 2, 3, 4, shape[1]) if shape[1] % g == 0])
    filters = groups * s.choice((1, 1, 2, 3, 5, 16 if groups < 3 else 2, 64 if s.large and groups < 3 else 4))
    inputs = [a, s.new(kind, (filters, shape[1] // groups, *window["kernel_shape"]))]
    if s.chance(0.5):
        inputs.append(s.new(kind, (filters,)))
    s.node("Conv", inputs, group=groups, **window)


@draws(1.5)
def transposed_convolution(s: Sketch) -> None:
    a = _image(s, types_of("ConvTranspose", s.opset))
    shape, kind = s.dims(a), s.type(a)
    window = _window(s, shape[2:])
    if window is None or 0 in shape or "auto_pad" in window or s.special:
        return
    groups = s.choice([g for g in (1, 1, 2, shape[1]) if shape[1] % g == 0])
    inputs = [a, s.new(kind, (shape[1], s.integer(1, 4), *window["kernel_shape"]))]
    if s.chance(0.3):
        window["output_padding"] = [s.integer(0, stride - 1) for stride in window["strides"]]
    s.node("ConvTranspose", inputs, group=groups, **window)


@draws(4)
def pooling(s: Sketch) -> None:
    kind = s.choice(("MaxPool", "MaxPool", "AveragePool", "LpPool"))
    if s.special:
        return
    a = _image(s, types_of(kind, s.opset))
    window = _window(s, s.dims(a)[2:], kind == "MaxPool" or (kind == "AveragePool" and s.opset >= 19))
    if window is None or 0 in s.dims(a):
        return
    if s.chance(0.3) and "auto_pad" not in window and (kind != "LpPool" or s.opset >= 18):
        window["ceil_mode"] = 1
    if kind != "MaxPool" and s.type(a) == "f64":
        window.pop("ceil_mode", None)  # onnx's evaluator, the only judge, errs in windows that reach over the end
    if kind == "AveragePool":
        window["count_include_pad"] = s.integer(0, 1)
    s.node(kind, [a], outputs=2 if kind == "MaxPool" and s.chance(0.1) else 1, **window)


@draws(1)
def global_pooling(s: Sketch) -> None:
    kind = s.choice(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"))
    if not s.special:
        s.node(kind, [_image(s, tuple(t for t in types_of(kind, s.opset) if t in FLOATS))])


@draws(1.5)
def resize(s: Sketch) -> None:
    mode = s.choice(("nearest", "linear", "cubic"))
    # onnxruntime takes weights in f32, and cuts off what is between whole numbers.
    a = _image(s, ("f32", "f32", "f16", *(("f64", "u8", "i8") if mode == "nearest" else ())))
    shape = s.dims(a)
    if s.special or (mode != "nearest" and len(shape) != 4):
        return
    attributes: dict[str, Any] = {"mode": mode}
    attributes["coordinate_transformation_mode"] = s.choice(
        ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    )
    if mode == "nearest":
        attributes["nearest_mode"] = s.choice(("round_prefer_floor", "floor", "ceil", "round_prefer_ceil"))
    sizes = [*shape[:2], *(max(1, s.choice((n, 2 * n, 3 * n, n // 2, n + 1))) for n in shape[2:])]
    s.node("Resize", [a, "", "", s.numbers(*sizes)], **attributes)
