"""What each call does: the request is checked, carried out on the candidate, and answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.host.confine import Limits
from roundkit.models.round_plan import FrozenRuntime
from roundkit.pilots.gateway.files import CandidateFiles, NotGiven
from roundkit.pilots.gateway.programs import Program, start
from roundkit.pilots.gateway.protocol import Answer
from roundkit.rules.pilot_answers import (
    CALL,
    DELETE,
    EXIT_CODES,
    LIST,
    MISSING_STDERR,
    OWN_TOOLS,
    READ,
    STALE_STDERR,
    WRITE,
    AnswerCode,
    shown_name,
)

_DIGEST_DIGITS = frozenset("0123456789abcdef")
_DIGEST_LENGTH = 64
_MOST_ARGV_BYTES = 100_000
"""Of all arguments of a call: Linux starts nothing with one of 131,072, on whatever host."""


@dataclass(frozen=True)
class Done:
    """What one call was and what came of it.

    Attributes:
        tool: What it was about, as :class:`GatewayCall` names it.
        answer: What the agent is told.
        argv: What a program was given.
        path: The path, in its normal form.
        expected_sha256: The digest that a change named.
        found_sha256: Digest of what lay there before.
        after_sha256: Digest of what lies there now.
    """

    tool: str
    answer: Answer
    argv: tuple[str, ...] = ()
    path: str | None = None
    expected_sha256: str | None = None
    found_sha256: str | None = None
    after_sha256: str | None = None


@dataclass(frozen=True)
class Tools:
    """The tools of one trial.

    Attributes:
        files: The candidate's files.
        programs: The variant's programs by name.
        runtime: The frozen interpreter.
        limits: What one call may use.
        call_s: Seconds after which a program is ended.
        stop: Descriptor that ends a running program as soon as it can be read.
    """

    files: CandidateFiles
    programs: Mapping[str, Program]
    runtime: FrozenRuntime
    limits: Limits
    call_s: float
    stop: int

    def do(self, name: str, given: Any) -> Done:
        """Carry out one call, whatever it asks for; what cannot be done is answered, not raised.

        Args:
            name: The tool, as the agent names it.
            given: Its arguments, as the agent gave them.

        Raises:
            ConfinementUnavailable: the host cannot confine a program.
        """
        shapes = {READ: {"path"}, LIST: set(), WRITE: {"path", "content", "expected_sha256"}}
        shapes |= {DELETE: {"path", "expected_sha256"}, CALL: {"program", "argv"}}
        if name not in shapes:
            return Done(shown_name(name), _said("malformed", f"there is no tool {name[:100]!r}"))
        if not isinstance(given, dict) or set(given) != shapes[name]:
            wanted = ", ".join(sorted(shapes[name])) or "none"
            return Done(name, _said("malformed", f"the arguments of {name} are: {wanted}"))
        if name == CALL:
            return self._call(given["program"], given["argv"])
        if name == LIST:
            return self._list()
        return self._file(name, given)

    def _list(self) -> Done:
        try:
            return Done(LIST, Answer("ok", 0, self.files.list()))
        except NotGiven as refused:
            return Done(LIST, _said("refused", str(refused)))

    def _file(self, name: str, given: dict[str, Any]) -> Done:
        path, expected = given["path"], given.get("expected_sha256")
        if not isinstance(path, str):
            return Done(name, _said("malformed", "path is a text"))
        if not (_is_digest(expected) or (expected is None and name != DELETE)):
            return Done(name, _said("malformed", "expected_sha256 is 64 hexadecimal digits"))
        content = _encoded(given.get("content", ""))
        if content is None:
            return Done(name, _said("malformed", "content is a text"))
        try:
            before = self.files.read(path)
        except NotGiven as refused:
            return Done(name, _said("refused", str(refused)), expected_sha256=expected)
        found = None if before is None else digest_bytes(before)
        done = Done(name, Answer("ok", 0), (), path, expected, found, found)
        if name == READ:
            return _read(done, before)
        if expected != found:
            return replace(done, answer=Answer("stale", EXIT_CODES["stale"], stderr=STALE_STDERR))
        try:
            return self._change(done, content)
        except NotGiven as refused:
            return replace(done, answer=_said("refused", str(refused)))

    def _change(self, done: Done, content: bytes) -> Done:
        assert done.path is not None
        if done.tool == DELETE:
            self.files.delete(done.path)
            return replace(done, after_sha256=None)
        self.files.write(done.path, content)
        after = digest_bytes(content)
        return replace(done, answer=Answer("ok", 0, sha256=after), after_sha256=after)

    def _call(self, name: object, argv: object) -> Done:
        if not isinstance(name, str) or name not in self.programs:
            shown = shown_name(name) if isinstance(name, str) and name not in OWN_TOOLS else CALL
            return Done(shown, _said("malformed", f"there is no program {shown!r}"))
        if not isinstance(argv, list) or not all(map(_is_argument, argv)):
            return Done(name, _said("malformed", "argv is a list of texts without null bytes"))
        words = tuple(argv)
        if sum(len(word.encode()) + 1 for word in words) > _MOST_ARGV_BYTES:
            return Done(name, _said("refused", f"argv has more than {_MOST_ARGV_BYTES} bytes"), words)
        try:
            ended = start(
                self.programs[name],
                words,
                candidate=self.files.root,
                runtime=self.runtime,
                limits=self.limits,
                deadline=Deadline.after(self.call_s),
                stop=self.stop,
            )
        except Refused as refused:
            return Done(name, _said("refused", refused.refusals[0].message), words)
        why = None if ended.end_reason == "exited" else ended.end_reason
        answer = Answer("program", ended.exit_code, ended.stdout_tail or "", ended.stderr_tail, ended=why)
        return Done(name, answer, words)


def over_the_limit(most: int) -> Answer:
    """Return the answer to a call beyond the plan's number."""
    return _said("refused", f"this trial's {most} calls are used up")


def _read(done: Done, content: bytes | None) -> Done:
    if content is None:
        return replace(done, answer=Answer("missing", EXIT_CODES["missing"], stderr=MISSING_STDERR))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return replace(done, answer=_said("refused", "the file is no UTF-8 text"))
    return replace(done, answer=Answer("ok", 0, text, sha256=done.found_sha256))


def _said(code: AnswerCode, why: str) -> Answer:
    clean = why.encode("utf-8", "replace").decode()
    return Answer(code, EXIT_CODES[code], stderr=f"{code}: {clean}\n")


def _encoded(content: object) -> bytes | None:
    if not isinstance(content, str):
        return None
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError:
        return None


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == _DIGEST_LENGTH and set(value) <= _DIGEST_DIGITS


def _is_argument(value: object) -> bool:
    return _encoded(value) is not None and "\0" not in str(value)
