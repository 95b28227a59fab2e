"""Lance datasets, written, committed and kept healthy from Python."""
