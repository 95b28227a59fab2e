"""Row ids, row versions and row addresses: sequences, indexes and maps over them."""
