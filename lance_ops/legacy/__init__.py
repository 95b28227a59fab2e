"""What only tables of file version 0.1 need: pending dictionaries, and pruning by the statistics of batches."""
