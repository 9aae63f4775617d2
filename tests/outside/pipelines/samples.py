"""Inputs of the pipelines, made by rule: a page with text, a drawing, a voice; and how results are printed."""

import io
import json
import sys

import numpy as np

RATE = 16000


def page(width=640, height=400):
    """An image [height, width, 3] of u8: three lines of text on white."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(("Data movement bounds", "Invoice 2041, total 318.50", "tile by tile")):
        draw.text((30, 30 + 110 * i), line, fill="black", font=ImageFont.load_default(size=40))
    return np.asarray(image)


def drawing(width=640, height=480):
    """An image [height, width, 3] of u8: shapes of several colours over a gradient."""
    y, x = np.mgrid[:height, :width]
    image = np.stack([x * 255 // width, y * 255 // height, (x + y) * 255 // (width + height)], axis=-1).astype(np.uint8)
    for cx, cy, radius, colour in ((200, 160, 90, (230, 190, 160)), (420, 260, 120, (40, 60, 200))):
        image[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] = colour
    return image


def png(image):
    """The bytes of an image's PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def voice(seconds=2.0, rate=RATE):
    """Samples of f32 in [-1, 1]: syllables of a buzz through three formants, with pauses."""
    t = np.arange(int(seconds * rate)) / rate
    pitch = np.cumsum(110 + 20 * np.sin(2 * np.pi * 1.3 * t)) / rate
    buzz = sum(np.sin(2 * np.pi * k * pitch) * np.exp(-(((110 * k - f) / 150) ** 2)) for k in range(1, 30)
               for f in (500, 1500, 2500))  # fmt: skip
    syllables = np.clip(np.sin(2 * np.pi * 2.5 * t), 0, 1)
    noise = np.random.default_rng(0).normal(0, 0.003, t.shape)
    return (0.5 * buzz * syllables / np.abs(buzz).max() + noise).astype(np.float32)


def pcm(samples):
    """Samples of f32 as those of i16."""
    return (np.clip(samples, -1, 1) * 32767).astype(np.int16)


def show(result):
    """Print a result as the last line, in JSON."""
    sys.stdout.write("\n" + json.dumps(result, default=_plain, ensure_ascii=True) + "\n")


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return vars(value) if hasattr(value, "__dict__") else str(value)
