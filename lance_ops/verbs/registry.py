"""The verbs, in one explicit tuple. A new one is a file beside its siblings and a line here."""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput
from lance_ops.verbs.contract import Verb
from lance_ops.verbs.maintenance import Cleanup, Compact, DropIndex, Migrate, Reindex, Repair, Verify
from lance_ops.verbs.references import Branch, Clone, Tag
from lance_ops.verbs.rows import AddColumns, DeleteDuplicates, DeleteRows, Erase, IngestFiles, Restore, Update, Upsert

__all__ = ["ALL_VERBS", "verb_named"]

ALL_VERBS: tuple[type[Verb], ...] = (
    IngestFiles,
    DeleteRows,
    DeleteDuplicates,
    Update,
    Upsert,
    AddColumns,
    Erase,
    Restore,
    Compact,
    Reindex,
    DropIndex,
    Cleanup,
    Verify,
    Repair,
    Migrate,
    Tag,
    Branch,
    Clone,
)


def verb_named(name: str) -> type[Verb]:
    """Return the verb of a name; raise `InvalidInput` that lists the names."""
    for verb in ALL_VERBS:
        if verb.name == name:
            return verb
    raise InvalidInput(f"there is no verb {name!r}: use one of {', '.join(verb.name for verb in ALL_VERBS)}")
