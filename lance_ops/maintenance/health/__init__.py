"""Measure how healthy a table is: index coverage, findings with remedies, and its history version by version."""
