"""Names for versions and places to hold them: tags, branches, pins, removals, clones."""
