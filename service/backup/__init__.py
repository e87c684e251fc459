"""Backups of a state directory: taking one while the service runs, and restoring a state directory from one."""
