"""The kernel's log as a file, with records as the kernel writes them."""

from __future__ import annotations

from pathlib import Path


class Log:
    """A fake /dev/kmsg: a file with records as the kernel writes them."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._number, self.now = path, 100, 10.0
        path.write_bytes(
            b"6,98,1,-;Linux version 6.1.0\n3,99,2,-;I/O error, dev sdb, sector 1 op 0x0:(READ)\n"
        )

    def say(self, *messages: str, after: float = 0.1, priority: int = 3) -> None:
        """Messages, a line each, so many seconds after the one before."""
        with self._path.open("a") as file:
            for message in (line.strip() for text in messages for line in text.strip().splitlines()):
                self.now += after
                file.write(f"{priority},{self._number},{int(self.now * 1e6)},-;{message}\n SUBSYSTEM=scsi\n")
                self._number += 1

    def lose(self, records: int) -> None:
        """The next record's number is so many higher."""
        self._number += records
