"""Data files: read and written page by page."""
