"""service: the composition root: settings, the loops, REST, the page, the commands.

In: a settings file, the environment, a state directory, HTTP. Out: HTTP, exit codes, sentences for people.
Every adapter is chosen here and nowhere else; no rule about disks or drains is written here.
"""
