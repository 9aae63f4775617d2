"""Models of sound: separation, codecs, spectra."""

from __future__ import annotations

import torch
import transformers as hf
from torch import Tensor, nn
from torch.nn import functional

from tests.torch_models.case import Call, Case, by_position


class TemporalBlock(nn.Module):
    """A dilated, depthwise block of a separator."""

    def __init__(self, width: int, hidden: int, dilation: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
            nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden), nn.PReLU(),
            nn.GroupNorm(1, hidden), nn.Conv1d(hidden, width, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class ConvTasNet(nn.Module):
    """Two speakers out of one signal: learnt filters, masks, and filters back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, 32, 16, 8, bias=False)
        self.norm, self.narrow = nn.GroupNorm(1, 32), nn.Conv1d(32, 16, 1)
        self.blocks = nn.Sequential(*(TemporalBlock(16, 24, 2**n) for n in range(3)))
        self.masks = nn.Conv1d(16, 64, 1)
        self.decoder = nn.ConvTranspose1d(32, 1, 16, 8, bias=False)

    def forward(self, sound: Tensor) -> Tensor:
        coded = functional.relu(self.encoder(sound.unsqueeze(1)))
        masks = self.masks(self.blocks(self.narrow(self.norm(coded)))).sigmoid()
        apart = coded.unsqueeze(1) * masks.view(len(sound), 2, 32, -1)
        return self.decoder(apart.flatten(0, 1)).view(len(sound), 2, -1)


class SpectralGate(nn.Module):
    """Short-time spectra, a mask from their magnitudes, and the signal back."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.mask = nn.Sequential(nn.Linear(33, 16), nn.ReLU(), nn.Linear(16, 33), nn.Sigmoid())

    def forward(self, sound: Tensor) -> Tensor:
        spectrum = torch.stft(sound, 64, 16, window=self.window, return_complex=True)
        mask = self.mask(spectrum.abs().transpose(1, 2)).transpose(1, 2)
        return torch.istft(spectrum * mask, 64, 16, window=self.window, length=sound.shape[-1])


class LogSpectrum(nn.Module):
    """Logarithms of magnitudes in bands, as recognisers of speech take them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bands", torch.rand(33, 20))

    def forward(self, sound: Tensor) -> Tensor:
        spectrum = torch.stft(sound, 64, 16, window=self.window, return_complex=True)
        power = torch.view_as_real(spectrum).pow(2).sum(-1).transpose(1, 2)
        return (power @ self.bands).clamp(min=1e-10).log10()


def _encodec() -> nn.Module:
    return hf.EncodecModel(
        hf.EncodecConfig(
            num_filters=4, upsampling_ratios=[4, 2], hidden_size=16, codebook_size=32, codebook_dim=16,
            num_lstm_layers=1, target_bandwidths=[24.0], num_residual_layers=1,
        )
    ).decoder  # fmt: skip


def _sounds(*shape: int) -> list[Call]:
    return [by_position(torch.randn(2, *shape, length)) for length in (320, 640, 320)]


CASES = (
    Case("conv-tasnet", "sound", ConvTasNet, lambda _model: _sounds()),
    Case("spectral-gate", "sound", SpectralGate, lambda _model: _sounds()),
    Case("log-spectrum", "sound", LogSpectrum, lambda _model: _sounds()),
    Case(
        "encodec-decoder",
        "transformers",
        _encodec,
        lambda _model: [by_position(torch.randn(1, 16, length)) for length in (10, 20, 10)],
    ),
)
