"""Where a run executes its tasks, as a Dagster resource."""
