"""Converts smartctl's text output to the object that smartctl would have printed with `--json`.

Input: the bytes of one text output, from 5.x to 7.5, `-x`, `-a` or a part of it. Output: a JSON object with those of
smartctl's own keys that the text has; `data.smart` decodes it as it decodes the real ones, so that both forms give
the same drive. There is one file for each protocol (ata, scsi, nvme), and `logs` for all three. `lines` cleans the
bytes, `numbers` reads figures in any locale, `zones` reads the printed time.
"""

from predrain.data.smart.text.clean_lines import is_text, split_smartctl_runs
from predrain.data.smart.text.text_document import NotTextError, is_nothing_read_message, parse_text_output

__all__ = ["NotTextError", "is_nothing_read_message", "is_text", "parse_text_output", "split_smartctl_runs"]
