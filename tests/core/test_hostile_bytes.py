"""Floor 0 against bytes that somebody chose: names, keys, text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refused
from roundkit.core.files import tree_digest
from roundkit.core.text import visible
from roundkit.core.yamlfile import load_yaml


def test_file_names_that_are_no_text_have_a_digest_of_their_own(tmp_path: Path) -> None:
    digests = set()
    for name in (b"x\xff", b"x\xfe", rb"x\xff"):
        folder = tmp_path / str(len(digests))
        folder.mkdir()
        os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT))
        digests.add(tree_digest(folder))
    assert len(digests) == 3


def test_many_keys_with_one_twice_are_refused_in_one_pass() -> None:
    pairs = ",".join(f'"{number}":1' for number in range(200_000))
    with pytest.raises(Refused, match="duplicate key '7'"):
        parse_json(f'{{{pairs},"7":2}}'.encode(), place="here")
    assert parse_json(json.dumps({"a": 1}).encode(), place="here") == {"a": 1}


@pytest.mark.parametrize(
    "data", [b"[" * 3000, b"&a [*a]", b"format: 2024-99-99", b"n: " + b"9" * 6000, b"\xff", b"a: ["]
)
def test_yaml_that_nobody_means_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="malformed-yaml"):
        load_yaml(data, place="campaign.yaml")


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert visible("a\x1b[2J\x00b\n\tc ü") == "a\ufffd[2J\ufffdb\n\tc ü"
