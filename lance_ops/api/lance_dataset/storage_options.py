"""The storage options of a handle: what reaches its store, such as an endpoint and credentials.

Nothing renews them here, so the latest options are the initial ones.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from hashlib import blake2b

from lance_ops import file
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.version_handle import Handle

__all__ = ["StorageOptions", "StorageOptionsAccessor"]

_KEY = secrets.token_bytes(32)
"""The key that ids are computed with. Without it, a reader of a log cannot test guesses of a password against an id."""

_REFRESH_SECONDS = 60


@check_public_methods
class StorageOptionsAccessor:
    """Storage options that do not change. Its text shows no values."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def with_static_options(cls, options: Mapping[str, str]) -> StorageOptionsAccessor:
        """Return an accessor of these options."""
        return cls(options)

    def get_storage_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self._options)

    def initial_storage_options(self) -> dict[str, str] | None:
        """Return the options."""
        return dict(self._options)

    def has_provider(self) -> bool:
        """Return False: nothing renews the options."""
        return False

    def refresh_offset_secs(self) -> int:
        """Return how many seconds before the options expire a provider would renew them."""
        return _REFRESH_SECONDS

    def accessor_id(self) -> str:
        """Return an id that accessors of equal options share, within this process."""
        text = json.dumps(self._options, sort_keys=True)
        return f"static_options_{blake2b(text.encode(), digest_size=8, key=_KEY).hexdigest()}"

    def __repr__(self) -> str:
        return f"StorageOptionsAccessor(id={self.accessor_id()}, has_provider=false)"


class StorageOptions(Handle):
    """The members of `LanceDataset` that show its storage options."""

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """The storage options that the handle was opened with, or None."""
        return dict(self._snapshot.storage_options) or None

    def latest_storage_options(self) -> dict[str, str] | None:
        """Return the storage options in use. They are the initial ones, because nothing renews them."""
        return self.initial_storage_options

    @property
    def storage_options_accessor(self) -> StorageOptionsAccessor | None:
        """The storage options with the reference's interface to them; None if there are none."""
        options = self.initial_storage_options
        return None if options is None else StorageOptionsAccessor(options)

    def new_file_session(self) -> file.LanceFileSession:
        """Return readers and writers of files beneath the dataset's root, with the dataset's storage options.

        A file that is removed or replaced in it is lost for every version that names it.
        """
        return file.LanceFileSession(self._snapshot.store.uri, self.initial_storage_options)
