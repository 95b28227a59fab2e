"""Verbs with a plan that one can see: preview, store, execute later, and compare before with after.

plan, preview = make_plan(DeleteRows(predicate="id < 5", reason="…"), dataset(uri))
execute_plan(StoredPlan.from_json(plan.to_json()), dataset(uri))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.verbs.contract import (
        REASON_PROPERTY,
        AbsentTable,
        Execution,
        Facts,
        Measures,
        Preview,
        Section,
        Target,
        Verb,
        VerbResult,
        WhenMoved,
        reason_properties,
    )
    from lance_ops.verbs.given_options import make_verb, options_given, parse_options
    from lance_ops.verbs.maintenance import Cleanup, Compact, DropIndex, Migrate, Reindex, Repair, Verify
    from lance_ops.verbs.options import DeclaredOption, Option, options_of
    from lance_ops.verbs.planning import Executed, do_now, execute_plan, make_plan
    from lance_ops.verbs.references import Branch, Clone, Tag
    from lance_ops.verbs.registry import ALL_VERBS, verb_named
    from lance_ops.verbs.rows import (
        AddColumns,
        DeleteDuplicates,
        DeleteRows,
        Erase,
        IngestedFiles,
        IngestFiles,
        Restore,
        Update,
        Upsert,
        declared_schema,
    )
    from lance_ops.verbs.sections import sample_of
    from lance_ops.verbs.stored_plan import StoredPlan

__all__ = [
    "ALL_VERBS",
    "REASON_PROPERTY",
    "AbsentTable",
    "AddColumns",
    "Branch",
    "Cleanup",
    "Clone",
    "Compact",
    "DeclaredOption",
    "DeleteDuplicates",
    "DeleteRows",
    "DropIndex",
    "Erase",
    "Executed",
    "Execution",
    "Facts",
    "IngestFiles",
    "IngestedFiles",
    "Measures",
    "Migrate",
    "Option",
    "Preview",
    "Reindex",
    "Repair",
    "Restore",
    "Section",
    "StoredPlan",
    "Tag",
    "Target",
    "Update",
    "Upsert",
    "Verb",
    "VerbResult",
    "Verify",
    "WhenMoved",
    "declared_schema",
    "do_now",
    "execute_plan",
    "make_plan",
    "make_verb",
    "options_given",
    "options_of",
    "parse_options",
    "reason_properties",
    "sample_of",
    "verb_named",
]

_MODULES = {
    "ALL_VERBS": "registry",
    "AbsentTable": "contract",
    "AddColumns": "rows",
    "Branch": "references",
    "Cleanup": "maintenance",
    "Clone": "references",
    "Compact": "maintenance",
    "DeclaredOption": "options",
    "DeleteDuplicates": "rows",
    "DeleteRows": "rows",
    "DropIndex": "maintenance",
    "Erase": "rows",
    "Executed": "planning",
    "Execution": "contract",
    "Facts": "contract",
    "IngestFiles": "rows",
    "IngestedFiles": "rows",
    "Measures": "contract",
    "Preview": "contract",
    "Migrate": "maintenance",
    "Option": "options",
    "REASON_PROPERTY": "contract",
    "Reindex": "maintenance",
    "Repair": "maintenance",
    "Restore": "rows",
    "Section": "contract",
    "StoredPlan": "stored_plan",
    "Tag": "references",
    "Target": "contract",
    "Update": "rows",
    "Upsert": "rows",
    "Verb": "contract",
    "VerbResult": "contract",
    "Verify": "maintenance",
    "WhenMoved": "contract",
    "declared_schema": "rows",
    "do_now": "planning",
    "execute_plan": "planning",
    "make_plan": "planning",
    "make_verb": "given_options",
    "options_given": "given_options",
    "options_of": "options",
    "parse_options": "given_options",
    "reason_properties": "contract",
    "sample_of": "sections",
    "verb_named": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
