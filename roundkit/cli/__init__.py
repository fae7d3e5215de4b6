"""Floor 7: the command line. A command parses, calls one function and prints."""

from __future__ import annotations

import sys

from roundkit.core.errors import RoundkitError


def main() -> None:
    """Run the command line and leave with its exit code: 0 done, 1 failed, 2 usage, 3 refused."""
    from roundkit.cli.app import app

    try:
        app(standalone_mode=True)
    except RoundkitError as error:
        print(f"roundkit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
