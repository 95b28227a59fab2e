"""Data files: read and written page by page."""

from __future__ import annotations

from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter, WrittenFile

__all__ = ["FileReader", "FileWriter", "WrittenFile"]
