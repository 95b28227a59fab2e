"""Start the browser that `.ci/servers` has unpacked, with the libraries and the font that came with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

INSTALLED = Path(sys.prefix) / "servers" / "chromium"

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic")

# Without a font that fontconfig finds, Chromium ends when it draws the text of a chart.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Run Chromium for the block; `folder` keeps its settings. Skips the test where it is not installed."""
    executable = INSTALLED / "chromium"
    if not executable.exists():
        pytest.skip("Chromium is not installed: run `make servers`")
    settings = folder / "fonts.conf"
    settings.write_text(_FONTS.format(fonts=INSTALLED / "fonts", cache=folder / "fonts-cache"))
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "FONTCONFIG_FILE": str(settings),
        "LD_LIBRARY_PATH": str(INSTALLED / "al2023" / "lib"),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_FLAGS, env=environment)
        try:
            yield browser
        finally:
            browser.close()
