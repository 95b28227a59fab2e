"""The reference's `lance.torch`: datasets of PyTorch. Needs the extra `torch`.

`lance_ops.torch.data` has the datasets, `lance_ops.torch.dist` says which process this is.
"""

from lance_ops.core.errors import MissingPackage

try:
    import torch  # noqa: F401 # the modules of this package import it too
except ImportError as error:
    raise MissingPackage("lance_ops.torch", "torch", "torch", str(error)) from error

from lance_ops.torch.devices import preferred_device

__all__ = ["preferred_device"]
