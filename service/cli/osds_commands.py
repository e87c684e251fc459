"""`predrain osds`: every OSD of the cluster with its disk's outlook, the most urgent first."""

from __future__ import annotations

from predrain.service.cli.disk_rows import OSD_COLUMNS, list_osds, rank_osd_urgency
from predrain.service.cli.row_tables import CHOSEN, RowChoice, print_rows
from predrain.service.cli.shared_options import HERE, ServiceAddress


def list_osds_command(*, choice: RowChoice = CHOSEN, where: ServiceAddress = HERE) -> int:
    """List every OSD of the cluster, the most urgent first: its outlook, its place, its fullness, latency and drain.

    Example: predrain osds --filter host=stor-2* --sort -full
    """
    nothing = "no OSD is known that is asked for; without a cluster there are only disks: predrain disks"
    print_rows(list_osds(where.client()), OSD_COLUMNS, choice, rank_osd_urgency, nothing)
    return 0
