"""Steps from one manifest to the next that several operations share."""
