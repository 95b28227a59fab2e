"""The scalar functions that a filter may call."""
