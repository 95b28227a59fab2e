"""Answer questions about the rows of one version: scans, takes, index look-ups, and what changed between versions."""
