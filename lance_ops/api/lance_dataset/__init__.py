"""`LanceDataset`: its parts, one module for each kind of verb, under the reference's names."""
