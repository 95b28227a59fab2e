"""Wire messages, generated from `protos/` by `protos/generate.py`; never edited."""
