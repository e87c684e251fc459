"""The folder from which the mgr of a throw-away cluster loads its modules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.system.ceph import roots

SHIPPED = Path("/usr/share/ceph/mgr")


def link_modules(release: str, folder: Path, modules: Iterable[Path]) -> None:
    """Link the modules of the release into `folder`, and make a place for `modules`, which are bound there.

    The mgr searches one folder only.
    """
    ours = {module.name for module in modules}
    root = roots.root_of(release)
    for module in (root / "usr/share/ceph/mgr" if root else SHIPPED).iterdir():
        if module.name not in ours:
            (folder / module.name).symlink_to(SHIPPED / module.name)
    for name in ours:
        (folder / name).mkdir()
    if release == "reef":
        # Debian's 18.2: bcrypt cannot be imported in a sub-interpreter, and its failure stops every module.
        words = "def gensalt(*a, **k):\n    raise RuntimeError('not here')\n\nhashpw = checkpw = gensalt\n"
        (folder / "bcrypt.py").write_text(words)
