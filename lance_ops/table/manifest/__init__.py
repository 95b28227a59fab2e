"""A manifest as a value: its file, schema, flags, base paths and invariants."""
