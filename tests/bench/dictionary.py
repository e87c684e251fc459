"""`python -m tests.bench.dictionary NUMBER`: learns a dictionary for the readings and outlooks of the store.

The dictionary is learned from the recorded answers of PREDRAIN_DATA, without the models that the benches measure. So
the sizes that `python -m tests.bench.stored_bytes` prints are those of models that the dictionary does not know. Serial
numbers and WWNs are replaced by random ones. No dictionary that stores use already is learned again (decision 0053).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import zstandard

from predrain.data.ids import HostName
from predrain.data.outlook import Outlook
from predrain.data.reading import Smart
from predrain.data.smart import Undecodable, decode_smartctl_output
from predrain.data.store import documents
from predrain.data.wire import wire_bodies
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.bench import plumbing
from tests.bench import stage as scene
from tests.conftest import data_folder

BYTES = 32 << 10
COPIES, LOOKS = 20, 3
HOSTS = ("ceph", "stor", "osd", "node")


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn and write; 1 if the source data are missing or the dictionary exists."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dictionary", description=__doc__)
    parser.add_argument("number", type=int)
    number = parser.parse_args(arguments).number
    path = Path(documents.__file__).with_name("dictionaries") / f"{number}.zstd-dictionary"
    if data_folder() is None or path.exists():
        print("PREDRAIN_DATA is missing" if data_folder() is None else f"{path} exists", file=sys.stderr)
        return 1
    samples = list(draw_samples(Random(number)))
    learned = zstandard.train_dictionary(BYTES, samples, dict_id=number, level=3)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(learned.as_bytes())
    print(f"{path}: {len(learned.as_bytes()):,} bytes from {len(samples):,} documents")
    return 0


def draw_samples(random: Random) -> Iterator[bytes]:
    """The JSON of a reading and of its outlook, for some drives of each model that no bench measures."""
    measured = {one.identity.model for one in scene.drives(len(plumbing.documents()))}
    forecaster = BundledForecaster.load()
    for text in plumbing.documents():
        try:
            smart = decode_smartctl_output(text, scene.NOW).smart
        except Undecodable:
            continue
        if smart.identity.model not in measured:
            for number in range(COPIES):
                yield from _draw_pair(smart, number, forecaster, random)


def _draw_pair(
    smart: Smart, number: int, forecaster: BundledForecaster, random: Random
) -> tuple[bytes, bytes]:
    wwn = f"{random.randrange(16**16):016x}" if smart.identity.wwn else None
    mine = replace(smart, identity=replace(smart.identity, serial=f"{random.randrange(16**8):08X}", wwn=wwn))
    host = HostName(f"{random.choice(HOSTS)}-{random.randrange(300)}")
    begun = scene.NOW + timedelta(microseconds=random.randrange(10**14))
    state, before = None, dict[str, Outlook]()
    for look in range(LOOKS):
        at = begun + timedelta(hours=look)
        told = replace(
            scene.reading(4 * number, mine, at, look),  # one in ten is on its way out
            host=host,
            received_at=at + timedelta(seconds=3 * random.random()),
        )
        state = forecaster.fold(state, [told])
        (outlook,) = forecaster.compute_outlooks([state], at, before)
        before = {told.device: outlook}
    return wire_bodies.READING.write(told), wire_bodies.OUTLOOK.write(replace(outlook, survival=None))


if __name__ == "__main__":
    sys.exit(main())
