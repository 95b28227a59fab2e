"""A project of Dagster in a temporary folder, for declarations in several files."""

from __future__ import annotations

import traceback
from pathlib import Path

import dagster as dg
import pytest


class Project:
    """A project of Dagster in a folder of its own; `load` reads its `defs/` as a code location does."""

    def __init__(self, home: Path, package: str) -> None:
        self.home, self.package = home, package
        (home / package / "defs").mkdir(parents=True)
        (home / package / "__init__.py").touch()
        settings = f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{package}"\n'
        (home / "pyproject.toml").write_text(settings)

    def declare(self, name: str, text: str) -> Path:
        path = self.home / self.package / "defs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def load(self) -> dg.Definitions:
        return dg.load_from_defs_folder(path_within_project=self.home / self.package)

    def refusal(self) -> str:
        with pytest.raises(Exception, match="Error while") as caught:
            self.load()
        return "".join(traceback.format_exception(caught.value))
