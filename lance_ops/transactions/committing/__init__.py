"""Make a transaction the next version: the retry loop, and what it needs around it."""
