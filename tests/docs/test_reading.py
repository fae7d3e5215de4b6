"""What is taken for a command, and what is not."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer
from docs.reading import ROOT, commands, inline_code, pages, parse, without_comment
from docs.stage import compare

from roundkit.cli.app import app

PAGE = """\
Some words.

```
one --a  # a comment
two \\
  --b '# none' &&
three
# a comment alone

export A=x#y
```

- in a list:

  ```sh
  four
  ```

```text
five: a gain of 1.5 %
```

```yaml
# six.yaml
a: 1
```

```{toctree}
seven
```
"""


def test_a_page_is_split_into_blocks_and_these_into_commands() -> None:
    found = list(parse("page.md", PAGE))
    assert [(block.line, block.kind) for block in found] == [
        (4, "commands"), (16, "commands"), (20, "output"), (24, "yaml")
    ]  # fmt: skip
    split = [(command.line, command.text) for block in found[:2] for command in commands(block)]
    assert split == [
        (4, "one --a"),
        (5, "two \\\n  --b '# none' &&\nthree"),
        (10, "export A=x#y"),
        (16, "four"),
    ]
    assert found[3].file_name == "six.yaml"


@pytest.mark.parametrize("text", ["```nonsense\nx\n```\n", "```\nx \\\n```\n"])
def test_what_nobody_would_know_how_to_run_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md:"):
        [commands(block) for block in parse("page.md", text)]


@pytest.mark.parametrize(
    ("line", "kept"),
    [("a # b", "a"), ("a '# b'", "a '# b'"), ("a#b", "a#b"), ('a "x # y" # z', 'a "x # y"'), ("# a", "")],
)
def test_a_comment_begins_at_the_beginning_of_a_word(line: str, kept: str) -> None:
    assert without_comment(line) == kept


def test_output_is_compared_word_by_word_whatever_the_figures_are() -> None:
    (shown,) = parse("page.md", "```text\nfive: a gain of 1.5 %, …\n```\n")
    compare(shown, "one\nfive: a gain of 22 %, or so")
    with pytest.raises(AssertionError, match=r"page\.md:2"):
        compare(shown, "five: a loss of 22 %, or so")


@pytest.mark.parametrize("page", pages())
def test_words_within_sentences_name_commands_and_options_that_there_are(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for place, code in inline_code(page):
        if code.startswith("roundkit "):
            _check_words(place, code)
        elif code.startswith("make "):
            assert code.split()[1] in targets, f"{place}: {code}"


def _check_words(place: str, code: str) -> None:
    command: Any = typer.main.get_command(app)
    words = shlex.split(code)[1:]
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands"):
        assert not words or words[0].isupper() or words[0] in {"…", "--help"}, f"{place}: {code}"
        return
    known = {"-h", "--help"}
    for parameter in command.params:
        known.update(parameter.opts, parameter.secondary_opts)
    options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
    assert options <= known, f"{place}: {code}"
