"""The log and the store as a start finds them: whether they belong together, and whether the store is whole."""
