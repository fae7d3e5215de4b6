"""Show every line below the current folder that holds a word."""

import sys
from pathlib import Path

for path in sorted(Path().rglob("*")):
    if path.is_file():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if sys.argv[1] in line:
                print(f"{path}:{number}: {line}")
