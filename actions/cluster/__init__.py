"""The cluster: a port (`port.py`), its snapshot (`view.py`) and its adapters."""
