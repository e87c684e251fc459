"""Decodes smartctl output to `Smart` values.

Input: the bytes that smartctl printed for one device, as JSON or as text (`data.smart.text`). Output:
`SmartDocument`, or `Undecodable` with one sentence. There is one file for each protocol (ata, scsi, nvme). `packed`
decodes numbers that vendors pack into one, and `traffic` computes bytes written and read.

No disk is read here: that is the collector's task.
"""

from predrain.data.smart.smartctl_document import (
    LARGEST_DOCUMENT,
    SmartDocument,
    Undecodable,
    decode_smartctl_output,
)

__all__ = ["LARGEST_DOCUMENT", "SmartDocument", "Undecodable", "decode_smartctl_output"]
