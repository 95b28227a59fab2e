"""Convert JSON columns between text and stored JSONB bytes, and find parts of a document by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.json.json_columns import (
        ARROW_JSON,
        JSON_MARK,
        holds_json,
        json_to_storage,
        json_to_text,
        table_to_text,
        text_field,
        text_schema,
    )
    from lance_ops.core.json.jsonb import FALSE, NULL, NUMBER, STRING, TRUE, CorruptJsonb, Span, decode_part, document
    from lance_ops.core.json.jsonb_path import find, items, parse_path, step_into, whole

__all__ = [
    "ARROW_JSON",
    "FALSE",
    "JSON_MARK",
    "NULL",
    "NUMBER",
    "STRING",
    "TRUE",
    "CorruptJsonb",
    "Span",
    "decode_part",
    "document",
    "find",
    "holds_json",
    "items",
    "json_to_storage",
    "json_to_text",
    "parse_path",
    "step_into",
    "table_to_text",
    "text_field",
    "text_schema",
    "whole",
]

_MODULES = {
    "ARROW_JSON": "json_columns",
    "FALSE": "jsonb",
    "JSON_MARK": "json_columns",
    "NULL": "jsonb",
    "NUMBER": "jsonb",
    "STRING": "jsonb",
    "TRUE": "jsonb",
    "CorruptJsonb": "jsonb",
    "Span": "jsonb",
    "decode_part": "jsonb",
    "document": "jsonb",
    "find": "jsonb_path",
    "holds_json": "json_columns",
    "items": "jsonb_path",
    "json_to_storage": "json_columns",
    "json_to_text": "json_columns",
    "parse_path": "jsonb_path",
    "step_into": "jsonb_path",
    "table_to_text": "json_columns",
    "text_field": "json_columns",
    "text_schema": "json_columns",
    "whole": "jsonb_path",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
