"""The local file system as a store: durable writes, exclusive names, memory maps."""
