"""The rank and the random order of samplers that share rows among processes."""

from __future__ import annotations

import random

from lance_ops.core.errors import InvalidInput
from lance_ops.core.optional_packages import import_optional

__all__ = ["Sharded", "torch_rank"]


class Sharded:
    """What samplers that share rows among processes have in common: a rank, and a random order for each epoch."""

    def __init__(self, rank: int, world_size: int, randomize: bool = False, seed: int = 0) -> None:
        """Raise `InvalidInput` unless the rank is one of `world_size` processes."""
        if not 0 <= rank < world_size:
            raise InvalidInput(f"rank must be 0 to {world_size - 1} in a world of {world_size}, not {rank}")
        self._rank = rank
        self._world_size = world_size
        self._randomize = randomize
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; each epoch has a random order of its own."""
        self._epoch = epoch

    def _generator(self) -> random.Random:
        """Return the generator of the present epoch, the same one in every process."""
        return random.Random(self._seed + self._epoch)


def torch_rank() -> tuple[int, int]:
    """Return the rank and the world size of this process; raise `MissingPackage` without torch."""
    distributed = import_optional("torch.distributed", "from_torch of a sampler", "torch")
    return distributed.get_rank(), distributed.get_world_size()
