"""Find datasets by name: beneath a folder, by a pattern of paths, or in a small YAML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.namespaces.namespace import (
        FolderNamespace,
        ListedNamespace,
        Namespace,
        PatternNamespace,
        TableDescription,
        open_namespace,
    )

__all__ = [
    "FolderNamespace",
    "ListedNamespace",
    "Namespace",
    "PatternNamespace",
    "TableDescription",
    "open_namespace",
]

_MODULES = {
    "FolderNamespace": "namespace",
    "ListedNamespace": "namespace",
    "Namespace": "namespace",
    "PatternNamespace": "namespace",
    "TableDescription": "namespace",
    "open_namespace": "namespace",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
