"""Convert JSON columns between text and stored JSONB bytes, and find parts of a document by path."""

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
