"""Versions that were committed: read them, recognise the history that a plan was made on, find a transaction again."""
