"""Exit 0 when every answer of a run is the one that was expected; otherwise say which is not.

The file named on the command line holds the answers of the older release.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

SHOWN = 100


def main() -> int:
    """Hold the answers of one run against the expected ones."""
    expected = json.loads(Path(sys.argv[1]).read_text())
    answers = json.loads(Path(os.environ["ROUNDKIT_OUTPUT_DIR"], "answers.json").read_text())
    wrong = [question for question in expected if answers.get(question) != expected[question]]
    if wrong:
        first = f"{wrong[0]}: {answers.get(wrong[0])} instead of {expected[wrong[0]]}"
        print(f"{len(wrong)} of {len(expected)} answers are wrong, e.g. {first[:SHOWN]}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
