"""The declaration of what people see: where assets stand, notes on columns, and what the head shows of each version."""

from __future__ import annotations

from typing import Self

import dagster as dg
from pydantic import Field, model_validator

from lance_ops.dagster.declaration.declared_model import DeclaredModel

__all__ = ["ColumnNotes", "HeadContent", "ShownAssets"]


class ShownAssets(DeclaredModel):
    """What the UI shows of assets, whatever they are, and by what people find them."""

    description: str | None = Field(default=None, description="What people read about it in the UI.")
    owners: tuple[str, ...] = Field(default=(), description="E-mail addresses, or teams such as team:data.")
    group_name: str | None = Field(default=None, description="The group of the assets in the UI.")
    tags: dict[str, str] = Field(default_factory=dict, description="Tags of the assets.")
    kinds: tuple[str, ...] = Field(
        default=(), max_length=2, description="At most two kinds to show besides lance, such as csv."
    )

    @model_validator(mode="after")
    def _shown_as_dagster_allows(self) -> Self:
        try:
            # Dagster makes a tag of each kind, and checks the tags here, but the kinds only where an asset is made.
            kinds = {f"dagster/kind/{kind}": "" for kind in self.asset_kinds}
            dg.AssetSpec("checked", group_name=self.group_name, owners=self.owners, tags={**self.tags, **kinds})
        except dg.DagsterError as error:
            raise ValueError(f"group_name, owners, tags or kinds: {error}") from error
        return self

    @property
    def asset_kinds(self) -> set[str]:
        """The kinds that the assets have in the UI."""
        return {"lance", *self.kinds}


class ColumnNotes(DeclaredModel):
    """What people read about a column."""

    description: str = Field(description="Instead of the description in the metadata of the table's field.")


class HeadContent(DeclaredModel):
    """What the head shows besides measures."""

    sample_rows: int = Field(
        default=0, ge=0, le=100, description="The last rows of the newest version; none by default: they may be secret."
    )
