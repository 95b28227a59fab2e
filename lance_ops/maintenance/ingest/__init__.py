"""Append raw files to a table, each batch exactly once: plan, tasks, one commit."""
