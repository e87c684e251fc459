"""From readings to outlooks: the worker, what it asks to score a disk, its envelopes and its dead letters."""
