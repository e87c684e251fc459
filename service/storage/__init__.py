"""The log and the store at a start: whether they belong together, and whether the store is undamaged."""
