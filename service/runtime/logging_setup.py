"""The logging of the service: one line per event on stderr, for journald or a terminal."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Any

import structlog

from predrain.data.outside_text import CUT_MARK, escape_controls

LONGEST_LINE = 16_384
"""Characters of one event; a traceback has a few thousand."""


def escape_log_line(line: str) -> str:
    """Return `line` with control characters, escapes and bidirectional controls written out, cut if it is too
    long.

    Text from outside is cleaned on entry. This function covers text that bypasses that step: from the cluster's
    library, or in an error of another package.
    """
    shown = escape_controls(line[: LONGEST_LINE + 1])
    return shown if len(shown) <= LONGEST_LINE else shown[: LONGEST_LINE - 1] + CUT_MARK


def _written_out(_logger: object, _name: str, line: Any) -> str:
    return escape_log_line(line)


class OneLineFormatter(logging.Formatter):
    """Formats the records of other packages: one line, then the traceback, if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as lines that cannot control a terminal."""
        return "\n".join(map(escape_log_line, super().format(record).split("\n")))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the message as one line."""
        return escape_log_line(super().formatMessage(record))


class _StderrLogger(structlog.PrintLogger):
    """Prints to stderr. A line that cannot be printed (stderr is a file on a full disk) fails nothing else."""

    def msg(self, message: str) -> None:
        """Print one line."""
        with suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = fatal = failure = err = error = critical = exception = msg


def configure_logging(*, debug: bool = False) -> None:
    """Send every event to stderr, with its time and level."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(
                key_order=("timestamp", "level", "event"), bool_as_flag=False
            ),
            _written_out,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        # A test or a progress bar may replace stderr: later lines go to the replacement.
        logger_factory=lambda *_: _StderrLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # Kafka's client logs an absent broker up to eight times a second; the loop that needs it reports it
    # once.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
