"""Smoke test: one tiny search. Exits 1 where the obvious match is not found first."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from searchkit.engine import search_all  # the path must be known first

SOURCES = {
    "files.py": "def read_file(path):\n    return open(path).read()\n",
    "numbers.py": "def addNumbers(left, right):\n    return left + right\n",
}

(answer,) = search_all({"sources": SOURCES, "queries": ["add numbers"], "limit": 1})
if [hit["path"] for hit in answer["hits"]] != ["numbers.py"]:
    sys.exit(f"smoke: unexpected answer {answer}")
