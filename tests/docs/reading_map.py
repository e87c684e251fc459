"""Draws a reading's way from the disk to the drain, each stage with its functions, every arrow checked."""

from __future__ import annotations

from dataclasses import dataclass

from tests.docs.reading_way import BETWEEN, ROWS, Link, Stage, check_way, name_module, name_piece
from tests.docs.svg import CODE_CHARACTER, draw_arrow, draw_box, draw_page, draw_text

WIDTH = 1280.0
MARGIN, GAP, LINE = 20.0, 40.0, 21.0
ARROW = 36.0
"""The height of the gap between two rows."""
TITLE = 32.0
CODE_SIZE = 13.0


@dataclass(frozen=True, slots=True)
class StageBox:
    """A stage that was laid out."""

    stage: Stage
    x: float
    y: float
    width: float

    @property
    def height(self) -> float:
        """The height of its title and its functions."""
        return TITLE + LINE * len(self.stage.pieces) + 6

    @property
    def middle(self) -> float:
        """The middle between its left and its right edge."""
        return self.x + self.width / 2


def draw_reading_map() -> str:
    """Draw the way as the code has it now. Raises BrokenLink."""
    check_way()
    boxes: list[StageBox] = []
    y = MARGIN
    for row in ROWS:
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / max(2, len(row))
        left = (WIDTH - width * len(row) - GAP * (len(row) - 1)) / 2
        some = [StageBox(stage, left + place * (width + GAP), y, width) for place, stage in enumerate(row)]
        boxes += some
        y += max(box.height for box in some) + ARROW
    parts = [part for box in boxes for part in _draw_stage(box)]
    parts += [part for start, end, links in BETWEEN for part in _draw_between(boxes, start, end, links)]
    parts.append(
        draw_text(
            "soft",
            MARGIN,
            y,
            "A function calls the next one of its stage. Words beside a function or an arrow name what hands the data "
            "on in place of a call.",
        )
    )
    described = ", then ".join(" beside ".join(stage.title for stage in row) for row in ROWS)
    return draw_page(WIDTH, y + 14, "A reading's way from the disk to the drain", f"{described}.", parts)


def _draw_stage(box: StageBox) -> list[str]:
    parts = [
        draw_box("room", box.x, box.y, box.width, box.height),
        draw_text("name", box.x + 12, box.y + 21, box.stage.title),
    ]
    longest = max(len(name_piece(piece)) for piece in box.stage.pieces)
    start = max(box.x + 215, box.x + 12 + longest * CODE_SIZE * CODE_CHARACTER + 14)
    through = {link.end: link.through for link in box.stage.list_links()}
    for row, piece in enumerate(box.stage.pieces):
        base = box.y + TITLE + LINE * row + 13
        parts.append(draw_text("code", box.x + 12, base, name_piece(piece)))
        place = name_module(piece)
        if through.get(piece):
            place = f"{place}, by {through[piece]}"
        parts.append(draw_text("soft", start, base, place))
    return parts


def _draw_between(boxes: list[StageBox], start: Stage, end: Stage, links: tuple[Link, ...]) -> list[str]:
    upper = next(box for box in boxes if box.stage is start)
    lower = next(box for box in boxes if box.stage is end)
    shared_left, shared_right = max(upper.x, lower.x), min(upper.x + upper.width, lower.x + lower.width)
    middle = (shared_left + shared_right) / 2 if shared_left < shared_right else upper.middle
    top = upper.y + upper.height
    row = max(box.y + box.height for box in boxes if box.y == upper.y)
    points = [(middle, top), (middle, row), (middle, lower.y - 2)]
    parts = [draw_arrow(points)]
    if media := ", ".join(dict.fromkeys(link.through for link in links if link.through)):
        parts.append(draw_text("soft", middle + 10, row + ARROW / 2 + 4, media))
    return parts
