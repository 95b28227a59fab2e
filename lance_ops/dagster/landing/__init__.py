"""Raw files that land: how they form batches, what a sensor tick decides, and the asset that ingests them."""
