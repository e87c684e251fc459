"""smartctl output to `Smart` values."""
