"""The reference, made from the code at each build: commands, files, frames, codes, Python."""

from __future__ import annotations

from pathlib import Path

from _reference import code_pages, command_pages, file_pages, frame_pages, python_pages

INDEX = """# Reference

Made from the code of this version at each build of these pages.

| page | what is there |
| --- | --- |
| [Commands](commands/index.md) | every command with its options, defaults, examples and exit codes |
| [Files](files/index.md) | every file that you write or read: fields, types, defaults; as JSON Schema too |
| [Frames](frames.md) | every column of every data frame: type, unit, meaning |
| [Codes](codes.md) | every code that is printed or recorded: meaning, and what to do |
| [Python](python.md) | what a notebook may call |

```{toctree}
:hidden:

commands/index
files/index
frames
codes
python
```
"""


def reference_pages(docs: Path) -> dict[str, str]:
    """Return every page and file of the reference by its path below ``docs/reference``.

    Args:
        docs: The folder of the pages that people wrote: examples of commands are taken from them.
    """
    return {
        "index.md": INDEX,
        **command_pages.pages(docs),
        **file_pages.pages(),
        **frame_pages.pages(),
        **code_pages.pages(),
        **python_pages.pages(),
    }


def write_reference(docs: Path, target: Path) -> None:
    """Write the reference, leave pages alone that stay as they are, and remove those that are no more."""
    wanted = {target / name: text for name, text in reference_pages(docs).items()}
    for path in [path for path in target.rglob("*") if path.is_file()] if target.exists() else []:
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
