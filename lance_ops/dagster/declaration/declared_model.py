"""The base of the models that a declaration is made of."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler

__all__ = ["DeclaredModel", "OptionalSection", "Options"]

S = TypeVar("S", bound=BaseModel)


class _NoNull:
    """Leaves null out of the JSON schema of an optional value."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        (section,) = (choice for choice in handler(core_schema)["anyOf"] if choice != {"type": "null"})
        return dict(section)


OptionalSection: TypeAlias = Annotated[S | None, _NoNull()]
"""A section that may be left out. The JSON schema does not take null for it.

So `dg check yaml` and editors name the wrong key within a section. With null as another choice, they would only say
that the section fits none of the choices.
"""

Options = dict[str, str]
"""Options of a store, as written: their values may hold `${NAME}`."""


class DeclaredModel(BaseModel):
    """A frozen model that refuses unknown keys, infinities and NaN. Its texts are kept as written, with `${NAME}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
