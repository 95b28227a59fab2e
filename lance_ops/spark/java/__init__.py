"""Find a Java for Spark, and make the archive of classes that its sessions start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.java.class_archive import archive_options, make_archive
    from lance_ops.spark.java.finding import MIN_JAVA_VERSION, cache_folder, find_java, use_java

__all__ = ["MIN_JAVA_VERSION", "archive_options", "cache_folder", "find_java", "make_archive", "use_java"]

_MODULES = {**dict.fromkeys(__all__, "finding"), "archive_options": "class_archive", "make_archive": "class_archive"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
