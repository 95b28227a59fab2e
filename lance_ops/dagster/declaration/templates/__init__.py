"""Templates of Dagster, `{{ ... }}`, in the attributes of components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.dagster.declaration.templates.attribute_models import templates_in, with_rendered, with_templates
    from lance_ops.dagster.declaration.templates.unset_variables import unset_variable

__all__ = ["templates_in", "unset_variable", "with_rendered", "with_templates"]

_MODULES = {
    "templates_in": "attribute_models",
    "unset_variable": "unset_variables",
    "with_rendered": "attribute_models",
    "with_templates": "attribute_models",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
