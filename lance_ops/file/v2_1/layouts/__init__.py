"""How the values of one 2.1 or 2.2 page are laid out: one file a layout, reading and writing side by side."""
