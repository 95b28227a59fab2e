"""Judge two concurrent operations, and rebase the one that came later where that is possible."""
