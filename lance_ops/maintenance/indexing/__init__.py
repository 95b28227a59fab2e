"""Build scalar indices, extend them to new rows, and drop them."""
