"""JSON columns: their storage as JSONB bytes, and paths into a document."""
