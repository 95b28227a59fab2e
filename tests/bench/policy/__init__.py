"""Simulate the policy of `maintenance.debt` against never, nightly, and the best in hindsight."""
