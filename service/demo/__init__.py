"""service.demo: a simulated cluster whose disks have the histories of real drives, observed by all of predrain.

In: histories of drives (the held-out ones of data/fleets, or a directory), the name of a world, a seed. Out: a
running application on a simulated clock, and a table of forecasts, moves and client latency, beside the same seed
without predrain.
"""
