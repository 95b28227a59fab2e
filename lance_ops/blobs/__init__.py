"""Blob columns of an opened version: where the bytes of a blob are, and how a writer stores them beside a data file."""
