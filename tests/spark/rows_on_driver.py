"""Refuse that rows of a DataFrame reach the driver."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, Row

__all__ = ["refuse_rows_on_driver"]


def refuse_rows_on_driver(monkeypatch: pytest.MonkeyPatch, frame: DataFrame) -> None:
    """Let every method that brings rows to the driver fail, but for what tasks report of their work."""
    collect = type(frame).collect

    def refuse(*args: Any) -> None:
        raise AssertionError("the source was read on the driver")

    def collect_reports(self: DataFrame) -> list[Row]:
        assert self.columns == ["reported"], "the source was read on the driver"
        return collect(self)

    for name in ("toArrow", "toLocalIterator", "toPandas", "__arrow_c_stream__"):
        if hasattr(type(frame), name):
            monkeypatch.setattr(type(frame), name, refuse)
    monkeypatch.setattr(type(frame), "collect", collect_reports)
