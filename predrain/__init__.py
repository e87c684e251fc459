"""predrain: disk failures in Ceph clusters, forecast and drained before they happen.

The six packages lie at the top of the repository and are imported by these links: `predrain.actions`, `predrain.data`,
and so on. An installed package holds them here.
"""
