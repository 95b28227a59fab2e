"""The datasets of this deployment and their Dagster definitions."""
