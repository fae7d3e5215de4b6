"""Why a paired pilot cannot be frozen: names, programs, drifts and inputs, each problem with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from roundkit.core.errors import Refusal
from roundkit.evidence import pilot_layout as layout
from roundkit.measure.trees import list_files
from roundkit.models.base import IDENTIFIER_LENGTH
from roundkit.models.pilot_draft import MOST_SLOTS, PairedDraft
from roundkit.pilots.inputs import Input, input_problem
from roundkit.rules.pilot_answers import OWN_TOOLS
from roundkit.rules.pilot_matrix import attempt_name
from roundkit.rules.pilot_order import schedule
from roundkit.rules.pilot_programs import program_problem

Place = Callable[..., str]


def draft_problems(draft: PairedDraft, named: list[Input], at: Place) -> Iterator[Refusal]:
    """Yield every problem of a draft and of what it names.

    Args:
        draft: The pilot as its owner wrote it.
        named: Its inputs; they are looked at, and not changed.
        at: Names a place in the draft.
    """
    for check in _NAME_CHECKS:
        yield from check(draft, at)
    yield from _program_problems(draft, at)
    yield from _drift_problems(draft, named, at)
    for found in named:
        problem = input_problem(found, at(*found.place))
        if problem is not None:
            yield problem
    for found in (found for found in named if found.place[-1] in {"prompt", "guide"}):
        try:
            found.source.read_bytes().decode("utf-8")
        except ValueError:
            yield Refusal("not-text", f"{found.source} is not UTF-8", at(*found.place), "write it as UTF-8")
        except OSError:
            continue  # told above


def _repeated_names(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    yield from _repeated((task.id for task in draft.tasks), at("tasks"))
    yield from _repeated((variant.id for variant in draft.variants), at("variants"))
    yield from _repeated((tool.name for tool in draft.tools), at("tools"))


def _repeated_checks(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    for number, task in enumerate(draft.tasks):
        yield from _repeated((check.id for check in task.checks), at("tasks", number, "checks"))


def _repeated(names: Iterable[str], place: str) -> Iterator[Refusal]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Refusal("name-twice", f"{name!r} is there {times} times", place, "give each its own name")


def _names_with_a_dot(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    tasks, variants = [task.id for task in draft.tasks], [variant.id for variant in draft.variants]
    for kind, names in (("tasks", tasks), ("variants", variants)):
        for number, name in enumerate(names):
            if "." in name:
                what = f"{name!r} holds a dot, which stands between the parts of a tuple"
                yield Refusal("name-with-dot", what, at(kind, number, "id"), "use a hyphen")


def _tools_named_as_the_gateways(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    for number, tool in enumerate(draft.tools):
        if tool.name in OWN_TOOLS:
            what = f"{tool.name!r} is the gateway's own"
            yield Refusal("tool-name", what, at("tools", number, "name"), "rename it")


def _unknown_tools(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    known = {tool.name for tool in draft.tools}
    for number, variant in enumerate(draft.variants):
        for name in sorted(set(variant.tools) - known):
            place = at("variants", number, "tools")
            yield Refusal("unknown-tool", f"there is no tool {name!r}", place, "define it under `tools`")


def _too_many_or_too_long_tuples(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    tuples = len(draft.tasks) * len(draft.variants) * draft.repetitions
    if tuples > MOST_SLOTS:
        # Before they are laid out, since that takes as long and as much memory as there are.
        what = f"{tuples} tuples; a pilot has at most {MOST_SLOTS}"
        yield Refusal("too-many-tuples", what, at("repetitions"), "lower it, or split the pilot")
        return
    tasks, variants = [task.id for task in draft.tasks], [variant.id for variant in draft.variants]
    slots = schedule(tasks, variants, draft.repetitions, draft.seed)
    longest = max(map(attempt_name, slots), key=len)
    if len(longest) > IDENTIFIER_LENGTH:
        what = f"{longest!r} is longer than {IDENTIFIER_LENGTH} characters"
        yield Refusal("name-too-long", what, at("tasks"), "shorten the ids of tasks or variants")


_NAME_CHECKS = (
    _repeated_names,
    _names_with_a_dot,
    _tools_named_as_the_gateways,
    _repeated_checks,
    _unknown_tools,
    _too_many_or_too_long_tuples,
)


def _drift_problems(draft: PairedDraft, named: list[Input], at: Place) -> Iterator[Refusal]:
    """Yield drifts that no agent could ever meet: of no file, of one that it cannot read, of no change."""
    sources = {found.at: found.source for found in named}
    for number, task in enumerate(draft.tasks):
        if task.drift is None:
            continue
        place = at("tasks", number, "drift", "path")
        fixture = sources[layout.task_input(task.id, "fixture")]
        before, after = fixture / task.drift.path, sources[layout.task_input(task.id, "drift")]
        try:
            is_there = task.drift.path in list_files(fixture) and before.is_file()
        except OSError:
            continue  # told as an input that cannot be taken
        if not is_there:
            what = f"the fixture has no file {task.drift.path!r}, so that nobody could read it"
            yield Refusal("drift-outside", what, place, "name a file of the fixture, as agents name it")
        elif before.stat().st_size > draft.policy.file_bytes:
            what = f"{task.drift.path!r} is larger than policy.file_bytes, so that nobody could read it"
            yield Refusal("drift-outside", what, place, "raise file_bytes, or choose a smaller file")
        elif after.is_file() and after.read_bytes() == before.read_bytes():
            place = at("tasks", number, "drift", "patch")
            what = f"the drift of {task.drift.path!r} changes nothing"
            yield Refusal("drift-without-change", what, place, "write the file's new content into it")


def _program_problems(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    agent = draft.model.agent
    if draft.model.harness == "command" and agent.command is None and agent.preset is None:
        how = "write `command`, or name a `preset`"
        yield Refusal("command-missing", "nothing says what is started", at("model", "agent"), how)
    remedy = "name {python}, a program on the boundary's PATH, or a file below {files}"
    for number, tool in enumerate(draft.tools):
        problem = program_problem(tool.argv, has_files=tool.files is not None)
        if problem is not None:
            yield Refusal("program-outside", problem, at("tools", number, "argv"), remedy)
    for number, task in enumerate(draft.tasks):
        for position, check in enumerate(task.checks):
            problem = program_problem(check.argv, has_files=check.hidden is not None)
            if problem is not None:
                place = at("tasks", number, "checks", position, "argv")
                yield Refusal("program-outside", problem, place, remedy)
