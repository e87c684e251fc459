"""`predrain smart parse`."""

from pathlib import Path


def parse(*files: Path) -> int:
    """Decode smartctl's output, one JSON object a line.

    Example: predrain smart parse sda.json
    """
    print(files)
    return 0
