"""History that others kept, as readings: Backblaze's tables, smartctl's outputs, Ceph's health metrics, any SQL.

In: files, answers of a cluster, rows of a query. Out: `ImportPart`s, each a stream of `Reading`, `Outcome` or
`UnusableItem` (with its place and reason) in an order that is the same every time, so that an import can go on where it
was stopped.
Nothing is stored and nothing judged here: what may come in is for `data.wire.accept`.
"""

from predrain.data.importing.port import ImportPart, Item, NoScrape, UnusableItem, files_below

__all__ = ["ImportPart", "Item", "NoScrape", "UnusableItem", "files_below"]
