"""Where the OSDs of a host have their admin sockets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from predrain.data.ids import OsdId
from predrain.data.refusal import Refusal

_OSD = re.compile(r"[\w.-]+-osd\.(\d{1,9})\.asok\Z", re.ASCII)
_FSID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_ROOK = "var/lib/rook/exporter"
"""Rook keeps its daemons' sockets in `exporter` of `dataDirHostPath`, by default this folder."""


class SocketsUnreadable(Refusal):
    """The folder of the admin sockets may not be read."""


def admin_sockets(root: Path = Path("/")) -> Mapping[OsdId, Path]:
    """Admin sockets by OSD under `root`: classic (`run/ceph/CLUSTER-osd.N.asok`), cephadm's (`run/ceph/FSID/`), Rook's.
    Of two for one OSD the newer, since an adopted OSD leaves its classic socket behind.

    Empty where there is no Ceph. Raises SocketsUnreadable where there may be and nobody lets us look.
    """
    found: dict[OsdId, tuple[int, Path]] = {}
    for path in _candidates(root):
        named = _OSD.match(path.name)
        if not named:
            continue
        try:
            born = path.stat().st_mtime_ns
        except OSError:
            continue  # gone since it was listed
        osd = OsdId(int(named[1]))
        found[osd] = max(found.get(osd, (0, path)), (born, path))
    return {osd: path for osd, (_, path) in sorted(found.items())}


def _candidates(root: Path) -> Iterator[Path]:
    """`run` and `var/run` are one folder on a host; below another root the link between them may lead elsewhere."""
    for folder in ("run/ceph", "var/run/ceph"):
        for path in _listed(root / folder):
            yield path
            if _FSID.match(path.name):
                yield from _listed(path)
    yield from _listed(root / _ROOK)


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SocketsUnreadable(
            f"{folder} may not be read ({error.strerror}): run the collector as Ceph's user (ceph) or as root"
        ) from error
