"""Reads what a compiler made of each function: its bytes, and what it refers to (64-bit ELF)."""

import struct
from dataclasses import dataclass
from pathlib import Path

TEXT = ".text."
SHT_SYMTAB, SHT_RELA = 2, 4


@dataclass(frozen=True)
class Function:
    """One function of an object that was compiled with ``-ffunction-sections``.

    Attributes:
        code: Its bytes; where something else is referred to, they hold nothing yet.
        refers: Offset, kind, symbol and addend of each reference.
    """

    code: bytes
    refers: tuple[tuple[int, int, str, int], ...]

    def symbols(self) -> set[str]:
        """Return the names that it refers to."""
        return {symbol for _, _, symbol, _ in self.refers}


def read_functions(path: Path) -> dict[str, Function]:
    """Return the functions of an object file by name."""
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise SystemExit(f"{path} is no 64-bit ELF object")
    order = "<" if data[5] == 1 else ">"
    table, size, count, names_at = struct.unpack_from(f"{order}40xQ10xHHH", data, 0)
    sections = [
        struct.unpack_from(f"{order}IIQQQQIIQQ", data, table + number * size) for number in range(count)
    ]
    names = [_name(data, sections[names_at], section[0]) for section in sections]
    symbols: list[str] = []
    for section in sections:
        if section[1] == SHT_SYMTAB:
            symbols = list(_symbols(data, order, section, sections, names))
    found = {}
    for number, section in enumerate(sections):
        if names[number].startswith(TEXT):
            code = data[section[4] : section[4] + section[5]]
            refers = [
                row
                for other in sections
                if other[1] == SHT_RELA and other[7] == number
                for row in _references(data, order, other, symbols)
            ]
            found[names[number].removeprefix(TEXT)] = Function(code, tuple(refers))
    return found


def _name(data, strings, at):
    start = strings[4] + at
    return data[start : data.index(b"\0", start)].decode()


def _symbols(data, order, section, sections, names):
    for at in range(section[4], section[4] + section[5], 24):
        name, _info, _other, shndx = struct.unpack_from(f"{order}IBBH", data, at)
        own = _name(data, sections[section[6]], name)
        # The symbol of a section has no name of its own.
        yield own or (names[shndx] if shndx < len(names) else "")


def _references(data, order, section, symbols):
    for at in range(section[4], section[4] + section[5], 24):
        offset, info, addend = struct.unpack_from(f"{order}QQq", data, at)
        yield offset, info & 0xFFFFFFFF, symbols[info >> 32], addend
