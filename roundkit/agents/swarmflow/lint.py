"""What a SwarmFlow script must not do: at least what the engine's strict mode refuses, and files and network.

The engine replays a script from its journal, so that the script has to do the same each time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_IMPORTS = frozenset({"__future__", "json", "swarmflow"})
_CALLS = frozenset(
    {
        "open",
        "exec",
        "eval",
        "compile",
        "input",
        "print",
        "breakpoint",
        "globals",
        "vars",
        "getattr",
        "__import__",
    }
)
_MODULE_CALLS: dict[str, frozenset[str] | None] = {
    "time": frozenset({"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}),
    "random": None,
    "uuid": None,
}
_CLOCK_CALLS = frozenset({"now", "today", "utcnow"})
_WORKERS = frozenset({"agent", "workflow"})


@dataclass(frozen=True)
class LintProblem:
    """One thing that a script must not hold.

    Attributes:
        line: Where, from 1; null where it is about the whole script.
        message: What it is, in one sentence.
    """

    line: int | None
    message: str

    def __str__(self) -> str:
        """Render as ``line N: message``."""
        return self.message if self.line is None else f"line {self.line}: {self.message}"


def lint_script(source: str) -> tuple[LintProblem, ...]:
    """Return every problem of a script, in the order of its lines; none means that it may be written.

    Args:
        source: The script's text.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return (LintProblem(error.lineno, f"is no Python: {error.msg}"),)
    found = [
        *_meta(tree),
        *_entry(tree),
        *_imports(tree),
        *_calls(tree),
        *_late_bound(tree),
        *_worktrees(tree),
    ]
    return tuple(sorted(found, key=lambda problem: (problem.line or 0, problem.message)))


def _meta(tree: ast.Module) -> Iterator[LintProblem]:
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "META" for target in node.targets)
    ]
    if len(values) != 1:
        yield LintProblem(None, f"has {len(values)} top-level META, and one is needed")
        return
    if not isinstance(values[0], ast.Dict):
        yield LintProblem(values[0].lineno, "META is no literal dict")
        return
    for node in ast.walk(values[0]):
        unpacks = isinstance(node, ast.Dict) and None in node.keys
        if unpacks or not isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Constant | ast.expr_context):
            line = getattr(node, "lineno", None)
            yield LintProblem(line, f"META holds {type(node).__name__}, and only literals are read there")


def _entry(tree: ast.Module) -> Iterator[LintProblem]:
    runs = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == "run"]
    if not runs:
        yield LintProblem(None, "has no top-level `async def run(args)`")


def _imports(tree: ast.Module) -> Iterator[LintProblem]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        else:
            continue
        for name in names:
            if name not in _IMPORTS:
                yield LintProblem(node.lineno, f"imports {name}: a script touches no file, clock or network")


def _calls(tree: ast.Module) -> Iterator[LintProblem]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id in _CALLS:
            yield LintProblem(node.lineno, f"calls {function.id}()")
        elif isinstance(function, ast.Attribute) and _is_banned(function):
            yield LintProblem(
                node.lineno, f"calls {ast.unparse(function)}(): a replay would do something else"
            )


def _is_banned(function: ast.Attribute) -> bool:
    base = function.value.id if isinstance(function.value, ast.Name) else None
    if base in _MODULE_CALLS:
        names = _MODULE_CALLS[base]
        return names is None or function.attr in names
    return function.attr in _CLOCK_CALLS


def _late_bound(tree: ast.Module) -> Iterator[LintProblem]:
    """Find ``[lambda: agent(x) for x in …]``, whose workers would all get the last ``x``."""
    for comprehension in ast.walk(tree):
        if not isinstance(comprehension, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            continue
        for node in ast.walk(comprehension):
            if isinstance(node, ast.Lambda) and not node.args.defaults and _starts_worker(node.body):
                yield LintProblem(node.lineno, "a lambda in a comprehension binds its variable too late")


def _starts_worker(body: ast.expr) -> bool:
    calls = (node for node in ast.walk(body) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id in _WORKERS for call in calls)


def _worktrees(tree: ast.Module) -> Iterator[LintProblem]:
    for node in ast.walk(tree):
        keys: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            keys = node.keys
        named = isinstance(node, ast.keyword) and node.arg == "isolation"
        if named or any(isinstance(key, ast.Constant) and key.value == "isolation" for key in keys):
            yield LintProblem(
                getattr(node, "lineno", None),
                "sets `isolation`: a worktree starts from the default branch, and no replay remakes it",
            )
