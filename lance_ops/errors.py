"""The errors a user catches; see `lance_ops.core.errors` for what each means."""

from lance_ops.core.errors import *  # noqa: F403  (this module is the public door of that list)
from lance_ops.core.errors import __all__ as __all__
