"""Counts of whole lives, made by `python -m predrain.models.tables.make`."""
