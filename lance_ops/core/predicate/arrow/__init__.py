"""`pyarrow.compute` expressions as predicates."""
