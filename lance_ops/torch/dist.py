"""Which process this is, among those of `torch.distributed` and the workers of their data loaders."""

from __future__ import annotations

import torch.distributed
import torch.utils.data

__all__ = [
    "get_dist_rank",
    "get_dist_world_size",
    "get_global_rank",
    "get_global_world_size",
    "get_mp_rank",
    "get_mp_world_size",
]


def get_dist_world_size() -> int:
    """Return the number of processes of the group, 1 if there is none."""
    return torch.distributed.get_world_size() if _is_distributed() else 1


def get_dist_rank() -> int:
    """Return this process's number in the group, 0 if there is none."""
    return torch.distributed.get_rank() if _is_distributed() else 0


def get_mp_world_size() -> int:
    """Return the number of workers of the data loader, 1 outside a worker."""
    worker = torch.utils.data.get_worker_info()
    return 1 if worker is None else worker.num_workers


def get_mp_rank() -> int:
    """Return the number of this worker of the data loader, 0 outside a worker."""
    worker = torch.utils.data.get_worker_info()
    return 0 if worker is None else worker.id


def get_global_world_size() -> int:
    """Return the number of workers of all processes."""
    return get_dist_world_size() * get_mp_world_size()


def get_global_rank() -> int:
    """Return the number of this worker among the workers of all processes."""
    return get_dist_rank() * get_mp_world_size() + get_mp_rank()


def _is_distributed() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())
