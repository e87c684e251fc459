"""Endurance: whether a service under a steady load keeps its memory and its descriptors.

In: a number of minutes. Out: memory and descriptors over time, and whether both stayed flat.
`python -m tests.endure --minutes M` (`make endure`).
"""
