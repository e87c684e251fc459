"""Mechanics: the ways in which data leaves an OSD, one small batch in each poll.

In: view, drain, the PGs that may start. Out: commands.
"""
