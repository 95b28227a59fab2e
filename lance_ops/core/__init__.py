"""Types, names, errors and predicates that every room shares. Nothing here opens a file."""
