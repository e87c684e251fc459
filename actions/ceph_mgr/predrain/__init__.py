"""predrain inside ceph-mgr: the cluster's window on the service and, where a person says so, its hand.

Commands answer from what is known, HTTP happens only in `serve()`, and nothing is done by the module's own decision.
"""

try:
    from .module import Module as Module
except ModuleNotFoundError as missing:
    if missing.name != "mgr_module":  # outside ceph-mgr: the service seals steps by the same code
        raise
