"""The parts of a drawn page: boxes, lines of text and arrows, in colours for light and for dark."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape

CHARACTER = 0.56
"""How wide a character of the text is, in parts of its size; of code 0.62."""
CODE_CHARACTER = 0.62
STYLE = """
    svg { --page: #ffffff; --text: #1f2a30; --soft: #51646e; --room: #f0f4f6 }
    svg { --box: #ffffff; --line: #607d8b; --bad: #b71c1c }
    @media (prefers-color-scheme: dark) {
      svg { --page: #161b1f; --text: #e8eef1; --soft: #a9bac3; --room: #20282d }
      svg { --box: #2b353b; --line: #8aa4b1; --bad: #ff8a80 }
    }
    text { font: 14px system-ui, sans-serif; fill: var(--text) }
    .title { font-size: 17px; font-weight: 600 }
    .name { font-weight: 600 }
    .soft { font-size: 13px; fill: var(--soft) }
    .code { font: 13px ui-monospace, monospace }
    .bad { fill: var(--bad) }
    .page { fill: var(--page) }
    .room { fill: var(--room); stroke: var(--line) }
    .box { fill: var(--box); stroke: var(--line) }
    .frame { fill: none; stroke: var(--line); stroke-dasharray: 5 4 }
    .arrow { fill: none; stroke: var(--line); stroke-width: 2; marker-end: url(#head) }
    .unused { stroke-dasharray: 4 4 }
    .head { fill: var(--line) }
"""


def draw_page(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """Draw a whole picture. `description` says in words what the picture shows."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
            'aria-labelledby="title description">',
            f'  <title id="title">{escape(title)}</title>',
            f'  <desc id="description">{escape(description)}</desc>',
            '  <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
            'orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
            f"  <style>{STYLE}  </style>",
            f'  <rect class="page" width="{width:g}" height="{height:g}"/>',
            *(f"  {part}" for part in parts),
            "</svg>",
            "",
        ]
    )


def draw_box(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Draw a rectangle of the class `kind`."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'


def draw_text(kind: str, x: float, y: float, text: str) -> str:
    """Draw one line of text whose base line is at `y`."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def draw_arrow(points: Sequence[tuple[float, float]], kind: str = "") -> str:
    """Draw an arrow through the points."""
    way = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="arrow{f" {kind}" if kind else ""}" d="M{way}"/>'


def wrap_text(text: str, width: float, size: float = 13) -> list[str]:
    """Break a text into lines that fit into `width`."""
    return textwrap.wrap(text, max(8, int(width / (size * CHARACTER))), break_long_words=False)
