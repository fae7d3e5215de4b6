"""Every caller says what it wants, the one that came in meanwhile too, and there is no default.

The candidate runs in a process of its own, so that it cannot end this one.
"""

import subprocess
import sys

USE = """
import alerts, digest, notify
print(alerts.disk_full("a")); print(alerts.power_lost("b")); print(digest.weekly(["c"]))
try:
    notify.send("a", "b")
except TypeError:
    print("no default")
"""
WANTED = ["!operators: disk full on a", "!operators: no power in b", "everybody: c", "no default"]

done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
if done.stdout.splitlines() != WANTED:
    sys.exit(f"said {done.stdout!r} {done.stderr!r}")
