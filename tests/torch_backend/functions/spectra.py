"""Spectra and complex numbers."""

from __future__ import annotations

import torch

from torch_backend.functions.function import MATRIX, PAIR, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "rfft": Function(lambda x: torch.view_as_real(torch.fft.rfft(x)), normal("n", 8)),
    "irfft": Function(lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, 8), normal("n", 8)),
    "fft2": Function(lambda x: torch.fft.fft2(x).abs(), normal("n", 4, 6)),
    "fftshift": Function(torch.fft.fftshift, MATRIX),
    "stft": Function(
        lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(), normal(2, 40), fixed=True
    ),
    "stft of a size": Function(
        lambda x: torch.view_as_real(torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True)),
        lambda n: (torch.randn(2, 8 * n),),
    ),
    "istft": Function(
        lambda x: torch.istft(
            torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True), 8, 4, window=torch.hann_window(8)
        ),
        normal(2, 40),
        fixed=True,
    ),
    "complex product": Function(
        lambda x, y: torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y)),
        tensors(("n", 3, 2), ("n", 3, 2)),
    ),
    "rotary by complex numbers": Function(
        lambda x, a: torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(a), a)
        ).flatten(-2),
        tensors((2, "n", 8), ("n", 4)),
    ),
    "complex parts": Function(
        lambda x, y: (torch.complex(x, y).conj().imag, torch.complex(x, y).angle(), torch.complex(x, y).real), PAIR
    ),
}
