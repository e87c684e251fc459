"""The store: a port (`port.py`) and its adapters."""
