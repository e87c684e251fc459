"""What smartctl prints for people, as the object that it would have printed with `--json`.

In: the bytes of one text output, from 5.x to 7.5, `-x`, `-a` or a part of it. Out: a JSON object with those of
smartctl's own keys that the text tells; `data.smart` decodes it as it decodes the real ones, so that a drive reads
the same either way. One file a protocol (ata, scsi, nvme), `logs` for all three; `lines` cleans the bytes,
`numbers` reads figures in any locale, `zones` the printed time.
"""

from predrain.data.smart.text.lines import is_text, runs
from predrain.data.smart.text.transcript import NotTextError, stops, transcript

__all__ = ["NotTextError", "is_text", "runs", "stops", "transcript"]
