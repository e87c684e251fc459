"""Imports readings from other programs: Backblaze's tables, smartctl's outputs, Ceph's health metrics, any SQL.

Input: files, answers of a cluster, rows of a query. Output: `ImportPart`s, each a stream of `Reading`, `Outcome` or
`UnusableItem` (with its place and reason). The order of a stream is the same every time, so that an import can
continue where it was stopped.

Nothing is stored and nothing judged here: `data.wire.acceptance` decides what is accepted.
"""

from predrain.data.importing.import_port import ImportPart, Item, NoScrape, UnusableItem, files_below

__all__ = ["ImportPart", "Item", "NoScrape", "UnusableItem", "files_below"]
