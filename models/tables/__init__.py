"""Counts of whole lives, made by `python -m models.tables.make`."""
