"""The notebooks that ship: found by name, listed with what they take, copied for somebody to change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.outputs import check_new_folder
from roundkit.core.resources import shipped
from roundkit.report.parameters import Parameter, read_parameters


@dataclass(frozen=True)
class ShippedNotebook:
    """A notebook that ships: its name, the title of its first cell, and what it takes."""

    name: str
    title: str
    parameters: tuple[Parameter, ...]


def shipped_notebooks() -> tuple[ShippedNotebook, ...]:
    """Return every notebook that ships, sorted by name."""
    found = []
    for path in sorted(shipped("notebooks").glob("*.ipynb")):
        notebook = read_notebook(path)
        title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
        found.append(ShippedNotebook(path.stem, title, read_parameters(notebook, place=path.name)))
    return tuple(found)


def find_notebook(name_or_path: str | Path) -> Path:
    """Return the path of a notebook given by path, or by the name of a shipped one.

    Raises:
        Refused: ``no-notebook``, with the names that exist.
    """
    path = Path(name_or_path)
    if path.suffix == ".ipynb" and path.is_file():
        return path
    names = {found.stem: found for found in sorted(shipped("notebooks").glob("*.ipynb"))}
    if str(name_or_path) in names:
        return names[str(name_or_path)]
    raise refuse(
        "no-notebook", f"there is no notebook {str(name_or_path)!r}", remedy=f"one of {', '.join(names)}"
    )


def copy_notebook(name: str, folder: Path) -> Path:
    """Copy a shipped notebook, without its outputs, into a folder, and return the copy.

    Raises:
        Refused: ``no-notebook``; ``output-folder``; ``exists``: nothing is overwritten.
    """
    source = find_notebook(name)
    check_new_folder(folder, "DIR")
    target = folder / source.name
    if target.exists():
        raise refuse("exists", f"{target} exists", place=str(target), remedy="name another folder")
    notebook = read_notebook(source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(target, notebook_bytes(notebook))
    return target


def read_notebook(path: Path) -> Any:
    """Read a notebook.

    Raises:
        Refused: ``malformed``.
    """
    import nbformat

    try:
        return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise refuse("malformed", f"{path.name} is no notebook: {error}", place=path.name) from error


def notebook_bytes(notebook: Any) -> bytes:
    """Return a notebook as the bytes of its file, ended by one newline."""
    import nbformat

    text: str = nbformat.writes(notebook, version=4)  # type: ignore[no-untyped-call]
    return (text.rstrip("\n") + "\n").encode()
