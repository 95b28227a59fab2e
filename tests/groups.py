"""Groups of tests that start sessions and daemons of their own.

Each group runs on one worker, so few of these processes live at once. They are apart from the tests that share the
worker's session, so that no worker is the last for long.
"""

from __future__ import annotations

import pytest

__all__ = ["DAEMONS", "OWN_SESSIONS"]

DAEMONS = pytest.mark.xdist_group("daemons of Dagster")
OWN_SESSIONS = pytest.mark.xdist_group("own sessions of Spark")
