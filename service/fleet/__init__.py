"""The present state of every disk, OSD and drain in memory, computed from the store and the cluster."""
