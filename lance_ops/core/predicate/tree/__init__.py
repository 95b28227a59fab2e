"""The nodes of a predicate's tree: what each evaluates to, rules out by statistics, and prints as SQL."""
