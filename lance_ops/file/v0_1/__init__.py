"""Files of version 0.1: batches of rows, a page for every field and batch, and no nulls anywhere."""
