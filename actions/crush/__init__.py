"""CRUSH: the map as a value, and the placement computed from it."""
