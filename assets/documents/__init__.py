"""An example beside the flights: documents that come again, gain columns, and may have to be erased."""
