"""The head asset of a dataset: its events, its checks, and the sensor that records external versions."""
