"""What files and manifests share of the wire: schemas as messages, framing, and fields we do not know."""
