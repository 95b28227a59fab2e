"""Build a predicate's tree from parts, with every name resolved and every type checked."""
