"""From readings to outlooks: the worker, its forecaster, its envelopes and its dead letters."""
