"""Files of versions 2.1 and 2.2: a column for every leaf, its pages with levels for the nesting."""
