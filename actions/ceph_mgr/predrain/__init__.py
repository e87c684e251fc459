"""The predrain module of ceph-mgr: it shows in the cluster what the service reports and, if configured, executes
steps.

Commands answer from the last report. HTTP happens only in `serve()`. The module decides nothing by itself.
"""

try:
    from .module import Module as Module
except ModuleNotFoundError as missing:
    if missing.name != "mgr_module":  # outside ceph-mgr: the service signs steps by the same code
        raise
