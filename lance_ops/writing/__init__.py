"""Write rows as new fragments, and commit them as a version: create, append and overwrite."""
