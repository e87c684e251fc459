"""service.demo: a simulated cluster whose disks live the real lives of real drives, watched by the whole of predrain.

In: histories of drives (the held-out ones of data/fleets, or a folder), a world's name, a seed. Out: a running house on
a simulated clock, and at the end a table of what was foretold, moved and felt, beside the same seed without predrain.
"""
