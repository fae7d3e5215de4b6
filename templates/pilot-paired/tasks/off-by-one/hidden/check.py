"""The count is right at every edge.

The candidate runs in a process of its own, so that it cannot end this one.
"""

import subprocess
import sys

USE = "from pages import page_count; print([page_count(items, 5) for items in (0, 1, 4, 5, 6, 10, 11)])"

done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
if done.stdout != "[0, 1, 1, 1, 2, 2, 3]\n":
    sys.exit(f"said {done.stdout!r} {done.stderr!r}")
