"""The bundle that ships, changed at places that a seed chooses, with its checksums computed again.

`python -m tests.models.mutated FOLDER FIRST LAST` loads and uses the bundle of each seed in one process, and prints one
line with the result for each seed. If the process ends before its last line, a bundle has ended the process.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import sys
from pathlib import Path

from predrain.models.forecast.bundle import DEFAULT, FILES, REFERENCE, SUMS

TOKENS = (
    "-1",
    "0",
    "1",
    "15",
    "16",
    "999999999",
    "-999999999",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "",
    "x",
    "2147483648",
)


def mutate(folder: Path, seed: int) -> Path:
    """A copy of the shipped bundle in `folder`/SEED with one to three changes, mostly to its trees."""
    chance = random.Random(seed)
    made = folder / str(seed)
    shutil.copytree(DEFAULT, made)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(("model.txt",) * 12 + ("bundle.json", REFERENCE))
        file = made / name
        file.write_text((_change_trees if name == "model.txt" else _change_text)(file.read_text(), chance))
    if chance.random() < 0.8:  # or nearly every change is found by the size of its tree
        trees = made / "model.txt"
        trees.write_text(with_true_sizes(trees.read_text()))
    sign(made)
    return made


def sign(folder: Path) -> None:
    """Compute the checksums of the bundle again and write them."""
    names = [name for name in (*FILES, REFERENCE) if (folder / name).exists()]
    sums = (f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (folder / SUMS).write_text("".join(sums))


def _change_trees(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    fields = [at for at, line in enumerate(lines) if "=" in line]
    at = chance.choice(fields[:10] if chance.random() < 0.2 else fields)
    name, _, value = lines[at].partition("=")
    values = value.split(" ")
    how = chance.choice(("token", "token", "drop", "add", "line", "twice", "swap", "text"))
    if how == "token":
        values[chance.randrange(len(values))] = chance.choice(TOKENS)
    elif how == "drop":
        del values[chance.randrange(len(values)) :]
    elif how == "add":
        values += [chance.choice(TOKENS)] * chance.choice((1, 5_000))
    elif how == "swap" and len(values) > 1:
        one, other = chance.sample(range(len(values)), 2)
        values[one] = values[other]
    lines[at] = f"{name}={' '.join(values)}"
    if how == "line":
        del lines[at]
    elif how == "twice":
        lines.insert(at, lines[at])
    changed = "\n".join(lines)
    return _change_text(changed, chance) if how == "text" else changed


def with_true_sizes(text: str) -> str:
    """The text with tree_sizes that fit what was changed."""
    head, _, rest = text.partition("\nTree=0\n")
    body, end, _ = f"Tree=0\n{rest}".partition("end of trees\n")
    if not end:
        return text
    trees = [f"Tree={one}" for one in body.split("Tree=")[1:]]
    names = [line for line in head.split("\n") if line and not line.startswith("tree_sizes=")]
    sizes = " ".join(str(len(one)) for one in trees)
    return "\n".join([*names, f"tree_sizes={sizes}"]) + f"\n\n{body}{end}"


def _change_text(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    how = chance.choice(("cut", "number", "character", "repeat"))
    if how == "cut":
        return text[:at]
    if how == "number" and (found := re.compile(r"-?\d+(\.\d+)?").search(text, at)):
        return text[: found.start()] + chance.choice(TOKENS) + text[found.end() :]
    if how == "repeat":
        return text[:at] + text[at : at + chance.choice((1, 100, 5_000))] + text[at:]
    return text[:at] + chr(chance.randrange(1, 0x250)) + text[at + 1 :]


def _use_all(folder: Path, first: int, last: int) -> None:
    from predrain.models.deploy.bundle_trial import _find_forecast_fault
    from predrain.models.forecast.bundle import CorruptBundle

    for seed in range(first, last):
        made = mutate(folder, seed)
        try:
            became = _find_forecast_fault(made) or "forecasts"
        except CorruptBundle as refusal:
            became = f"refused: {refusal}"
        except Exception as error:
            became = f"trial: {type(error).__name__}"
        shutil.rmtree(made)
        print(seed, became.replace("\n", " | "), flush=True)


if __name__ == "__main__":
    _use_all(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
