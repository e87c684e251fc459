"""The cluster: a port (`port.py`), the snapshot that it returns (`view.py`), and the adapters of the port."""
