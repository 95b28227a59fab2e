"""Keys that a verb is given as files or as a dataset, and the rows of a table that have one of them."""

from lance_ops.verbs.rows.by_keys.given_keys import counts_here, match_keys, read_keys, staged_once
from lance_ops.verbs.rows.by_keys.keys_by_tasks import read_distinct_keys
from lance_ops.verbs.rows.by_keys.matched_keys import MatchedKeys

__all__ = ["MatchedKeys", "counts_here", "match_keys", "read_distinct_keys", "read_keys", "staged_once"]
