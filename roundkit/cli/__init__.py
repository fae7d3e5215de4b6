"""Floor 7: the command line. A command parses, calls one function and prints."""

from __future__ import annotations

import sqlite3
import sys

from roundkit.core.errors import RoundkitError

_INTERRUPTED = 130
"""What Typer makes of Ctrl-C."""


def main() -> None:
    """Run the command line and leave with its exit code: 0 done, 1 failed, 2 usage, 3 refused."""
    from roundkit.cli.app import app

    try:
        app()
    except SystemExit as leave:
        if leave.code != _INTERRUPTED:
            raise
        sys.exit(_tell(KeyboardInterrupt()))
    except Exception as error:
        sys.exit(_tell(error))


def _tell(error: BaseException) -> int:
    """Say in a sentence what went wrong and return the exit code; a fault of ours keeps its traceback."""
    match error:
        case RoundkitError():
            sentence, code = str(error), error.exit_code
        case KeyboardInterrupt():
            sentence, code = (
                "interrupted; what was recorded stays, and the same command goes on from there",
                1,
            )
        case BrokenPipeError():
            sys.stderr.close()
            return 1
        case OSError():
            place = f" {error.filename}" if error.filename else ""
            sentence, code = f"the system refused{place}: {error.strerror or error}", 1
        case sqlite3.Error():
            sentence, code = f"the round's database cannot be used now: {error}", 1
        case _:
            raise error
    print(f"roundkit: {sentence}", file=sys.stderr)
    return code
