"""How this campaign compiles: one object of several functions, each in a section of its own."""

import shutil
import subprocess
from pathlib import Path

FLAGS = (
    "-O2", "-c", "-x", "c", "-std=c99", "-w", "-ffunction-sections", "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables", "-fno-ident",
)  # fmt: skip


def compiler() -> str | None:
    """Return the machine's C compiler, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_unit(header: Path, sources: list[Path], target: Path) -> str:
    """Compile functions into one object, and return what the compiler said against it, if anything."""
    unit = "".join(f'#include "{path}"\n' for path in (header, *sources))
    found = compiler()
    if found is None:
        raise SystemExit("there is no C compiler")
    done = subprocess.run(
        [found, *FLAGS, "-o", str(target), "-"], input=unit, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
