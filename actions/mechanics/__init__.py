"""Mechanics: how data leaves an OSD, one small batch a look. In: view, drain, what may start. Out:
commands.
"""
