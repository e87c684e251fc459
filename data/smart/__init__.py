"""smartctl output to `Smart` values.

In: the bytes that smartctl printed for one device, as JSON or as text (`data.smart.text`). Out: `SmartDocument`, or
`Undecodable` with one sentence. One file a protocol (ata, scsi, nvme); what vendors pack into one number is in
`packed`, bytes written and read are in `traffic`.
Nothing is probed here: that is the collector's.
"""

from predrain.data.smart.document import LARGEST_DOCUMENT, SmartDocument, Undecodable, decode

__all__ = ["LARGEST_DOCUMENT", "SmartDocument", "Undecodable", "decode"]
