"""Find settings in Amazon's profiles that only botocore understands: other addresses, and certificates to trust."""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache

from lance_ops.store.services.credential_sources import environment_path

__all__ = ["special_settings"]

_MAX_BYTES = 1 << 20
_NAMES = rb"endpoint_url|services|use_fips_endpoint|use_dualstack_endpoint|ca_bundle|s3"
_SETTING = re.compile(rb"^[ \t]*(%s)[ \t]*=" % _NAMES, re.MULTILINE)


def special_settings() -> frozenset[str]:
    """Return the names of settings, such as endpoint_url or ca_bundle, that obstore ignores, in any profile.

    A file that cannot be read has none.
    """
    paths = (
        *environment_path("AWS_CONFIG_FILE", "~/.aws/config"),
        *environment_path("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    )
    return frozenset().union(*map(_settings, paths))


def _settings(path: str) -> frozenset[str]:
    try:
        found = os.stat(path)
        return _read(path, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else frozenset()
    except (OSError, ValueError):
        return frozenset()


@lru_cache(maxsize=16)
def _read(path: str, modified_ns: int, size_bytes: int) -> frozenset[str]:
    """Read a file once for each of its states."""
    with open(path, "rb") as file:
        return frozenset(name.decode() for name in _SETTING.findall(file.read(_MAX_BYTES)))
