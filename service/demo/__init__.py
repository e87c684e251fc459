"""service.demo: a simulated cluster whose disks live the lives of real drives, watched by all of predrain.

In: histories of drives (the held-out ones of data/fleets, or a folder), the name of a world, a seed. Out: a
running house on a simulated clock, and a table of what was foretold, moved and felt, beside the same seed without.
"""
