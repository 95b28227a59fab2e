"""Files of version 2.0: a column for every field, its pages described by trees of array encodings."""
