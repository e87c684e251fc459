"""CRUSH: the map as a value, and placement computed from it."""
