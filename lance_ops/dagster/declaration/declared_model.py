"""The base of the models that a declaration is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["DeclaredModel", "Options"]

Options = dict[str, str]
"""Options of a store, as written: their values may hold `${NAME}`."""


class DeclaredModel(BaseModel):
    """A frozen model that refuses unknown keys. Its texts are kept as written, with their `${NAME}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
