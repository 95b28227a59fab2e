"""Fragments, data files and deletion files, as a manifest names them."""
