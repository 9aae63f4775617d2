"""Height and width of images: numbers, or symbols that a model reads from its tensors at run time."""

from dataclasses import dataclass

from tilec.zoo.forms import Dim
from tilec.zoo.shapes import Extent


@dataclass(frozen=True)
class Pixels:
    """Height and width of an image. Images of several resolutions have the same symbols: each is that of its tensor."""

    height: Dim
    width: Dim

    @property
    def count(self) -> int:
        """Number of pixels; -1, which a reshape infers, for symbols."""
        known = isinstance(self.height, int) and isinstance(self.width, int)
        return int(self.height) * int(self.width) if known else -1

    def over(self, divisor: int) -> "Pixels":
        """Of a smaller image: numbers are divided."""
        return Pixels(*(dim if isinstance(dim, str) else dim // divisor for dim in (self.height, self.width)))

    def read(self, tensor: str) -> tuple[Extent, Extent]:
        """Height and width as extents of `tensor` [batch, channels, height, width]."""
        return Extent(tensor, 2, self.height), Extent(tensor, 3, self.width)

    def scaled(self, tensor: str, factor: int = 1, divisor: int = 1) -> tuple[int | Extent, int | Extent]:
        """Height and width times `factor`, over `divisor`: numbers, or computed from the extents of `tensor`."""
        first, second = (
            factor * dim // divisor if isinstance(dim, int) else Extent(tensor, axis, dim, divisor, factor)
            for axis, dim in ((2, self.height), (3, self.width))
        )
        return first, second
