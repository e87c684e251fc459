# ruff: noqa
"""Rewrite imports of the six packages to `predrain.<package>`."""

import pathlib
import re
import subprocess

ROOMS = "collector|features|models|service|actions|data"
files = [
    f
    for f in subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split()
    if f.endswith((".py", ".pyi"))
]
n = 0
for f in files:
    p = pathlib.Path(f)
    s = p.read_text()
    o = s
    s = re.sub(
        rf"^(\s*)from ({ROOMS})(\.[\w.]+)? import ",
        lambda m: f"{m[1]}from predrain.{m[2]}{m[3] or ''} import ",
        s,
        flags=re.M,
    )
    s = re.sub(
        rf"^(\s*)import ({ROOMS})((?:\.\w+)*)(\s*(?:#.*)?$| as )",
        lambda m: f"{m[1]}import predrain.{m[2]}{m[3]}{m[4]}",
        s,
        flags=re.M,
    )
    if s != o:
        p.write_text(s)
        n += 1
print(n, "files")
