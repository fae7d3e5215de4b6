"""Floor 7: the command line. A command parses, calls one function and prints."""

from __future__ import annotations

import os
import sys
from errno import ENOSPC

from roundkit.core.errors import MAKE_ROOM, RoundkitError, system_refusal

_INTERRUPTED = 130
"""What Typer makes of Ctrl-C."""
_FULL = os.strerror(ENOSPC)


def main() -> None:
    """Run the command line and leave with its exit code: 0 done, 1 failed, 2 usage, 3 refused."""
    try:
        from roundkit.cli.app import app

        app()
    except KeyboardInterrupt as early:
        sys.exit(_tell(early))
    except SystemExit as leave:
        if leave.code != _INTERRUPTED:
            raise
        sys.exit(_tell(KeyboardInterrupt()))
    except Exception as error:
        sys.exit(_tell(error))


def _tell(error: BaseException) -> int:
    """Say in a sentence what went wrong and return the exit code; a fault of ours keeps its traceback."""
    import sqlite3

    from roundkit.core.codes import told

    match error:
        case RoundkitError():
            # What git and other commands say of a full disk says nothing of what to do.
            said = told(error)
            full = _FULL in said and "→" not in said
            sentence, code = f"{said}\n    → {MAKE_ROOM}" if full else said, error.exit_code
        case KeyboardInterrupt():
            sentence, code = "interrupted before anything was done", 1
        case BrokenPipeError():
            sys.stderr.close()
            return 1
        case OSError():
            refusal = system_refusal(error)
            sentence, code = str(refusal), 3 if refusal.code == "not-permitted" else 1
        case sqlite3.Error():
            remedy = "look at the rights and the disk of its folder, then run it again"
            sentence, code = f"the round's database cannot be used now: {error}\n    → {remedy}", 1
        case _:
            raise error
    print(f"roundkit: {sentence}", file=sys.stderr)
    return code
