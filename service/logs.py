"""What the service says of itself: one line an event on stderr, for journald or a terminal."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, debug: bool = False) -> None:
    """Send every event to stderr, with its time and level."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(
                key_order=("timestamp", "level", "event"), bool_as_flag=False
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        # Whoever replaces stderr (a test, a terminal's progress bar) gets what is said from then on.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    # Kafka's client tells of a broker that is away up to eight times a second; the loop that met it tells it once.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
