"""Lance schemas: fields with ids, their edits, and the logical types of the format."""
