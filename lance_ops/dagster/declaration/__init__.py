"""A declared dataset: its YAML, its names, and the environment variables in it."""
