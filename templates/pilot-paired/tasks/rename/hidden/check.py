"""The old name is gone everywhere, the new one works, and nothing else is there or missing.

The candidate runs in a process of its own, so that it cannot end this one.
"""

import subprocess
import sys
from pathlib import Path

FILES = {"NOTES.md", "cart.py", "prices.py", "report.py", "test_cart.py"}
USE = """
import cart, prices, report
order = [(2, 300)]
print(prices.order_total(order), cart.checkout(order, 5), report.turnover([order, order]))
"""

found = {str(path) for path in Path().rglob("*") if path.is_file()}
left = [name for name in sorted(found) if "total_price" in Path(name).read_text()]
said = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False).stdout
if found != FILES or left or said.split() != ["600", "605", "1200"]:
    sys.exit(f"files {sorted(found)}, old name in {left}, said {said!r}")
