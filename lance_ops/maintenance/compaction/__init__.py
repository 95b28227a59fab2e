"""Rewrite small fragments as larger ones without their deleted rows, and remap the indices."""
