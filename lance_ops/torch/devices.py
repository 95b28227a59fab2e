"""Choose a device to compute on."""

from __future__ import annotations

import torch

__all__ = ["preferred_device"]


def preferred_device(device: str | torch.device | None = None) -> torch.device:
    """Return the given device, or the best that this machine has: CUDA, Apple's GPU, or the CPU."""
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
