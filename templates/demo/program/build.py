"""Build step: compile and import every module of searchkit. Exits 1 where one does not."""

import compileall
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> int:
    """Compile, then import, everything."""
    sys.path.append(str(ROOT))
    package = ROOT / "searchkit"
    if not compileall.compile_dir(package, quiet=1):
        return 1
    for module in sorted(package.glob("*.py")):
        importlib.import_module("searchkit" if module.stem == "__init__" else f"searchkit.{module.stem}")
    return 0


sys.exit(main())
