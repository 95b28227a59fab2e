"""Arrow data: rows picked from it, nested types, extension types, and memory for values."""
