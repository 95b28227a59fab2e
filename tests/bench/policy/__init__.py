"""Simulate the policy of `maintenance.debt` against never, nightly, AutoComp's rule, and the best in hindsight."""
