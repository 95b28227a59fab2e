"""What an index or a zone map can answer of a predicate, and what remains."""
