"""Backups of a state directory, taken while the service runs, and how one becomes a state directory again."""
