"""The event log: a port (`port.py`) and its adapters."""
