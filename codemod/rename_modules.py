# ruff: noqa
"""Rename modules by a table, with every reference: `python codemod/rename_modules.py TABLE`, at the root of a checkout.

TABLE: a Python file of this folder without its suffix; its `MOVE` maps dotted names without `predrain.` to new ones.
Run `ruff check --fix` and `ruff format` afterwards; the type checkers tell what it could not see.
"""

import importlib
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
MOVE = importlib.import_module(sys.argv[1]).MOVE
ROOMS = ["collector", "features", "models", "service", "actions", "data"]


def git(*a):
    subprocess.run(["git", *a], check=True)


mods = set()
for r in ROOMS:
    for f in pathlib.Path(r).rglob("*.py"):
        if "node_modules" in str(f):
            continue
        mods.add(str(f).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
keys = sorted(MOVE, key=len, reverse=True)


def new(m):
    for k in keys:
        if m == k or m.startswith(k + "."):
            return MOVE[k] + m[len(k) :]
    return m


pairs = [(m, new(m)) for m in sorted(mods) if new(m) != m]
for old, nw in pairs:
    s, d = pathlib.Path(old.replace(".", "/")), pathlib.Path(nw.replace(".", "/"))
    if s.with_suffix(".py").exists():
        d.parent.mkdir(parents=True, exist_ok=True)
        git("mv", str(s) + ".py", str(d) + ".py")
    elif (s / "__init__.py").exists():
        d.mkdir(parents=True, exist_ok=True)
        for f in subprocess.run(["git", "ls-files", str(s)], capture_output=True, text=True).stdout.split():
            rel = pathlib.Path(f).relative_to(s)
            if rel.suffix == ".py" and rel.name != "__init__.py":
                continue  # moved by its own entry
            if len(rel.parts) > 1 and rel.suffix == ".py":
                continue
            (d / rel).parent.mkdir(parents=True, exist_ok=True)
            git("mv", f, str(d / rel))
subprocess.run(
    "find collector features models service actions data -name node_modules -prune -o -name __pycache__ -type d -print | xargs rm -rf; find collector features models service actions data -path '*/node_modules' -prune -o -type d -empty -print | xargs -r rmdir 2>/dev/null",
    shell=True,
)
rooms = "|".join(ROOMS)
dotted = re.compile(rf"(?<![\w./-])(predrain\.)?((?:{rooms})(?:\.[A-Za-z_]\w*)+)")


def res(name):
    parts = name.split(".")
    for n in range(len(parts), 1, -1):
        h = ".".join(parts[:n])
        if h in mods:
            return new(h) + ("." + ".".join(parts[n:]) if n < len(parts) else ""), h
    return name, None


py_code = False


def dot(m):
    r, h = res(m[2])
    return (m[1] or "") + r if h else m[0]


def dot_p(m):
    r, h = res(m[2])
    return m[1] + r if h else m[0]


dotted_p = re.compile(rf"(?<![\w./-])(predrain\.)((?:{rooms})(?:\.[A-Za-z_]\w*)+)")
paths = re.compile(rf"(?<![\w/.-])((?:{rooms})(?:/[a-z_0-9]+)+)(\.py|/)?(?![\w-])")


def path(m):
    d = m[1].replace("/", ".")
    return new(d).replace(".", "/") + (m[2] or "") if d in mods and new(d) != d else m[0]


imp = re.compile(rf"^([ \t]*)from predrain\.((?:{rooms})(?:\.\w+)*) import (\([^)]*\)|[^\n(]+)$", re.M)


def imports(m):
    pk = m[2]
    items = [x.strip() for x in m[3].strip("()").replace("\n", " ").split(",") if x.strip()]
    keep = []
    out = []
    for a in items:
        name, _, alias = a.partition(" as ")
        full = f"{pk}.{name}"
        if full in mods and new(full) != full:
            np, _, nn = new(full).rpartition(".")
            out.append(
                f"{m[1]}from predrain.{np} import {nn}"
                + (f" as {alias or name}" if (alias or name) != nn else "")
            )
        else:
            keep.append(a)
    if not out:
        return m[0]
    if keep:
        out.insert(0, f"{m[1]}from predrain.{pk} import {', '.join(keep)}")
    return "\n".join(out)


import io
import tokenize

for f in subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split():
    p = pathlib.Path(f)
    if (
        p.is_symlink()
        or not p.is_file()
        or f == "uv.lock"
        or f.startswith("service/page/")
        or f == "docs/reference/settings.md"
    ):
        continue
    if p.suffix not in (".py", ".pyi", ".md", ".toml", ".yml", ".yaml", ".sh", "") and not f.startswith(
        (".ci/", "deploy/")
    ):
        continue
    try:
        s = p.read_text()
    except UnicodeDecodeError:
        continue
    o = s
    if f.endswith((".py", ".pyi")):
        s = imp.sub(imports, s)
        s = dotted_p.sub(dot_p, s)
        lines = s.splitlines(keepends=True)
        edits = []
        for t in tokenize.generate_tokens(io.StringIO(s).readline):
            if t.type == tokenize.COMMENT or (
                t.type == tokenize.STRING and t.string.lstrip("rRbBfF").startswith('"""')
            ):
                n = paths.sub(path, dotted.sub(dot, t.string))
            elif t.type == tokenize.STRING:
                n = paths.sub(path, t.string)
            else:
                continue
            if n != t.string:
                edits.append((t.start, t.end, n))
        for (r0, c0), (r1, c1), n in reversed(edits):
            lines[r0 - 1 : r1] = [lines[r0 - 1][:c0] + n + lines[r1 - 1][c1:]]
        s = "".join(lines)
    else:
        s = dotted_p.sub(dot_p, s)
        if f != "CHANGELOG.md":
            s = paths.sub(path, s)
        if f.endswith(".md") and f != "CHANGELOG.md":
            s = re.sub(
                r"`(" + rooms.replace("|", "|") + r")((?:\.\w+)+)`",
                lambda m: "`" + res(m[1] + m[2])[0] + "`",
                s,
            )
    if s != o:
        p.write_text(s)
print(len(pairs), "modules")
