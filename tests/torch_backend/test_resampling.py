"""Images in another size, beside PyTorch."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch.nn import functional  # noqa: E402


@pytest.mark.slow_cases("open sizes")
@pytest.mark.parametrize("varies", [False, True], ids=["known sizes", "open sizes"])
def test_windows_grow_where_an_image_shrinks(varies, native):
    def smooth(x):
        made = [
            functional.interpolate(x, size=size, mode=mode, antialias=True)
            for mode, size in (("bilinear", (5, 20)), ("bicubic", (13, 4)))
        ]
        return [*made, functional.interpolate(x, scale_factor=0.6, mode="bicubic", antialias=True)]

    images = [(torch.randn(2, 3, rows, columns),) for rows, columns in ((8, 9), (13, 6), (40, 31))]
    native(smooth, *(images if varies else images[:1]), varies=varies)


def test_largest_elements_of_windows(native):
    def largest(x):
        return functional.adaptive_max_pool2d(x, (3, 4)), functional.adaptive_max_pool1d(x[0], 9)

    x = torch.randn(2, 4, 7, 9)
    native(largest, (x,), (x / 0,))
