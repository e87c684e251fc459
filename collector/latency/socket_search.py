"""Finds the admin sockets of the OSDs of a host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from predrain.data.ids import ClusterId, OsdId, OsdKey, parse_cluster_id
from predrain.data.refusal import Refusal

_OSD = re.compile(r"([\w.-]+)-osd\.(\d{1,9})\.asok\Z", re.ASCII)
_ROOK = "var/lib/rook/exporter"
"""Rook keeps its daemons' sockets in `exporter` of `dataDirHostPath`, by default this folder."""


class SocketsUnreadable(Refusal):
    """The folder of the admin sockets is not readable."""


def admin_sockets(root: Path = Path("/")) -> Mapping[Path, OsdKey]:
    """Return the OSD of each admin socket under `root`: classic (`run/ceph/CLUSTER-osd.N.asok`), cephadm, Rook.

    cephadm's sockets are in `run/ceph/FSID/`, and only this path gives the OSD's cluster. The sockets are in the order
    of the numbers, and of one number the newest is the first: an adopted OSD leaves its classic socket behind. Return
    an empty mapping if there is no Ceph. Raises SocketsUnreadable if there may be sockets and the folder is not
    readable.
    """
    found: dict[tuple[OsdId, ClusterId | None, str], tuple[int, Path]] = {}
    for path in _list_candidate_sockets(root):
        named = _OSD.match(path.name)
        if not named:
            continue
        try:
            born = path.stat().st_mtime_ns
        except OSError:
            continue  # gone since it was listed
        place = OsdId(int(named[2])), parse_cluster_id(path.parent.name), named[1]
        found[place] = max(found.get(place, (0, path)), (born, path))
    ordered = sorted(found.items(), key=lambda one: (one[0][0], -one[1][0], one[1][1]))
    return {path: OsdKey(cluster, osd) for (osd, cluster, _), (_, path) in ordered}


def _list_candidate_sockets(root: Path) -> Iterator[Path]:
    """Yield the paths that may be sockets.

    `run` and `var/run` are one folder on a host. Below another root the link between them may lead elsewhere.
    """
    for folder in ("run/ceph", "var/run/ceph"):
        for path in _list_folder_paths(root / folder):
            yield path
            if parse_cluster_id(path.name) is not None:
                yield from _list_folder_paths(path)
    yield from _list_folder_paths(root / _ROOK)


def _list_folder_paths(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SocketsUnreadable(
            f"{folder} may not be read ({error.strerror}): run the collector as Ceph's user (ceph) or as root"
        ) from error
