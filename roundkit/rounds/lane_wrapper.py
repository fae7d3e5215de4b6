#!/usr/bin/env python3
"""Submit this lane's changes, and see what became of them.

Usage: ``.roundkit/round submit`` and ``.roundkit/round status [TICKET] [--wait SECONDS]``.

Standard library only, Python 3.8 or newer. Reads the lane's repository and never writes to it. Prints one
line of JSON. Exit codes: 0 done, 1 something is broken, 2 wrong usage, 3 refused.
"""
# Python 3.8, and file names are bytes here, since they need not be text:
# ruff: noqa: PTH100, PTH103, PTH104, PTH105, PTH108, PTH112, PTH115, PTH118, PTH120, PTH123, PTH208, UP017

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import unicodedata
from datetime import datetime, timezone

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to load as half of what is needed here
    from typing import Any

# The coordinator runs its own copy of this file for a lane, and says for which.
HOME = os.environ.get("ROUNDKIT_LANE_HOME") or os.path.dirname(os.path.abspath(__file__))
CLONE = os.path.dirname(HOME)
OUTBOX = os.path.join(HOME, "outbox")
STATUS = os.path.join(HOME, "status")
SCRATCH = os.path.join(HOME, "scratch")

CHUNK_BYTES = 1 << 20
LISTED_PATHS = 100
NAMED_PATHS = 3
POLL_S = 0.1
FINAL_STATES = ("measured", "rejected")
TICKET_DIGITS = 8
MAX_PATH_BYTES = 1024  # the coordinator takes no longer path
ERROR_CHARACTERS = 500
OWNER_MAY_EXECUTE = 0o100
HEAD_ROW = b"branch.oid "
NO_MODE = b"000000"
STATUS_FIELDS = 7  # before the path in a row of `git status --porcelain=v2`: XY sub mH mI mW hH hI

SETTINGS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.splitIndex=false", "core.untrackedCache=false",
    "core.fileMode=true", "core.symlinks=true", "core.ignoreCase=false", "core.autocrlf=false",
    "core.excludesFile=/dev/null", "core.sparseCheckout=false", "safe.directory=*",
)  # fmt: skip


class Refused(Exception):
    """The submission is refused: a code and what it means."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Broken(Exception):
    """Something that the wrapper needs is missing or damaged."""


def git(words: list[str], index: str, check: bool = True) -> bytes:
    """Run one git command on an index, which is written only when the command is there to write it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(
        GIT_INDEX_FILE=index, GIT_OPTIONAL_LOCKS="0", GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull,
        HOME=os.devnull, XDG_CONFIG_HOME=os.devnull, LC_ALL="C",
    )  # fmt: skip
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    try:
        done = subprocess.run(
            ["git", *settings, "-C", CLONE, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise Broken(f"git cannot be started: {error}") from error
    if check and done.returncode != 0:
        raise Broken(f"git {words[0]}: {done.stderr.decode('utf-8', 'replace').strip()[-ERROR_CHARACTERS:]}")
    return done.stdout


def make_base_index(base: str, index: str) -> None:
    """Make an index that holds exactly the base commit.

    It starts from the lane's own, so that git need not read files that it saw unchanged before; what was
    staged or committed since does not matter.
    """
    try:
        # With its times: git reads anew what changed in the second in which the index was written.
        shutil.copy2(os.path.join(CLONE, ".git", "index"), index)
        git(["read-tree", "--reset", base], index)
    except (OSError, Broken):
        remove(index)
        git(["read-tree", base], index)
    git(["update-index", "-q", "--refresh"], index, check=False)


def changed_paths(base: str) -> dict[bytes, bool]:
    """Return every path of the working tree that differs from the base, and whether the base has it."""
    seen = seen_by_status(base)
    return compared_with_base(base) if seen is None else seen


def seen_by_status(base: str) -> dict[bytes, bool] | None:
    """Return the changes as one ``git status`` lists them, or None where it compares with anything else.

    That is so once the lane has committed or staged something, or damaged its index.
    """
    index = os.path.join(CLONE, ".git", "index")
    words = ["status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--untracked-files=all",
             "--no-renames", "--ignore-submodules=none"]  # fmt: skip
    try:
        rows = git(words, index).split(b"\0")
    except Broken:
        return None
    changed = {}
    head = None
    for row in rows:
        kind, _, rest = row.partition(b" ")
        if kind == b"?":
            changed[rest] = False
        elif kind == b"1":
            fields = rest.split(b" ", STATUS_FIELDS)
            if not fields[0].startswith(b"."):
                return None
            changed[fields[STATUS_FIELDS]] = fields[2] != NO_MODE
        elif kind == b"#":
            head = rest[len(HEAD_ROW) :] if rest.startswith(HEAD_ROW) else head
        elif row:
            return None
    return changed if head == base.encode("ascii") else None


def compared_with_base(base: str) -> dict[bytes, bool]:
    """Return the changes against the base alone, whatever was staged or committed since."""
    os.makedirs(SCRATCH, exist_ok=True)
    index = os.path.join(SCRATCH, f"index.{os.getpid()}")
    try:
        make_base_index(base, index)
        tracked = git(["diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=none"], index)
        others = git(["ls-files", "-z", "--others", "--exclude-standard"], index)
    finally:
        remove(index)
        remove(f"{index}.lock")
    changed = {path: False for path in others.split(b"\0") if path}
    changed.update((path, True) for path in tracked.split(b"\0") if path)
    return changed


def remove(path: str) -> None:
    """Remove a file if it is there."""
    if os.path.lexists(path):
        os.unlink(path)


def name_problem(path: bytes) -> str | None:
    """Say why a path cannot be submitted under its name, or return None."""
    try:
        name = path.decode("utf-8")
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if any(unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp"} for letter in name) or "\\" in name:
        return "its name holds a control character or a backslash"
    if len(path) > MAX_PATH_BYTES:
        return f"its path is longer than {MAX_PATH_BYTES} bytes"
    return "it is a repository of its own" if name.endswith("/") else None


def copy_content(path: bytes, mode: int, blobs: str) -> str:
    """Copy a file's bytes, or a link's target, into a folder under their digest; return the digest."""
    part = os.path.join(blobs, ".part")
    digest = hashlib.sha256()
    with open(part, "wb") as target:
        if stat.S_ISLNK(mode):
            link = os.readlink(path)
            digest.update(link)
            target.write(link)
        else:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as source:
                for piece in iter(lambda: source.read(CHUNK_BYTES), b""):
                    digest.update(piece)
                    target.write(piece)
    os.replace(part, os.path.join(blobs, digest.hexdigest()))
    return digest.hexdigest()


def entry_for(path: bytes, in_base: bool, blobs: str) -> dict[str, Any] | None:
    """Copy one path and return its manifest entry; None when there is nothing to say.

    Raises:
        ValueError: it is neither a file nor a link.
    """
    full = os.path.join(os.fsencode(CLONE), path)
    try:
        mode = os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFDIR
    name = path.decode("utf-8")
    if stat.S_ISDIR(mode):  # gone, or a folder took its place, whose files are listed by themselves
        return {"path": name, "mode": None, "deleted": True, "sha256": None} if in_base else None
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise ValueError("it is neither a file nor a link")
    git_mode = "120000" if stat.S_ISLNK(mode) else "100755" if mode & OWNER_MAY_EXECUTE else "100644"
    return {"path": name, "mode": git_mode, "deleted": False, "sha256": copy_content(full, mode, blobs)}


def collect(lane: dict[str, Any], blobs: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Copy every change under the lane's globs; return manifest entries, and what was left out."""
    allowed = re.compile(lane["globs_regex"])
    entries, outside, unsupported = [], [], []
    for path, in_base in sorted(changed_paths(lane["base_commit"]).items()):
        shown = path.decode("utf-8", "backslashreplace")
        problem = name_problem(path)
        if not allowed.match(shown):
            outside.append(shown)
            continue
        try:
            entry = None if problem else entry_for(path, in_base, blobs)
        except (OSError, ValueError) as error:
            problem = str(error)
        if problem:
            unsupported.append({"path": shown, "reason": problem})
        elif entry:
            entries.append(entry)
    left_out = {
        "outside_scope": outside[:LISTED_PATHS],
        "outside_scope_count": len(outside),
        "unsupported": unsupported[:LISTED_PATHS],
    }
    return entries, left_out


def canonical(value: object) -> bytes:
    """Return canonical JSON; for texts, booleans and nulls this is the form of RFC 8785."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def ticket_key(lane: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """Return the full digest that identifies a submission."""
    rows = sorted(entries, key=lambda entry: str(entry["path"]).encode("utf-8"))
    manifest_digest = hashlib.sha256(canonical(rows)).hexdigest()
    bound = {"round_digest": lane["round_digest"], "lane": lane["lane"], "manifest_digest": manifest_digest}
    return hashlib.sha256(canonical(bound)).hexdigest()


def ticket_name(lane: dict[str, Any], key: str) -> str:
    """Return the name of a ticket."""
    return f"{lane['round_id']}-{lane['lane']}-{key[:TICKET_DIGITS]}"


def submit(lane: dict[str, Any]) -> dict[str, Any]:
    """Publish what the lane changed, and return the answer."""
    os.makedirs(OUTBOX, exist_ok=True)
    draft = os.path.join(OUTBOX, f".tmp-{os.getpid()}-{os.urandom(6).hex()}")
    os.makedirs(os.path.join(draft, "blobs"))
    try:
        entries, left_out = collect(lane, os.path.join(draft, "blobs"))
        answer = publish(lane, entries, draft)
        if not entries and left_out["outside_scope_count"]:
            answer["message"] = outside_words(left_out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return {**answer, "submitted": len(entries), **left_out}


def outside_words(left_out: dict[str, Any]) -> str:
    """Say why nothing was handed over although something was changed."""
    named = ", ".join(left_out["outside_scope"][:NAMED_PATHS])
    more = left_out["outside_scope_count"] - NAMED_PATHS
    rest = f" and {more} more" if more > 0 else ""
    return f"nothing under this lane's globs changed; left out, since outside its scope: {named}{rest}"


def publish(lane: dict[str, Any], entries: list[dict[str, Any]], draft: str) -> dict[str, Any]:
    """Move what was collected into the outbox under its key, unless it is there already."""
    if not entries:
        return {"ticket": None, "status": "nothing-changed", "duplicate": False}
    key = ticket_key(lane, entries)
    ticket = ticket_name(lane, key)
    known = known_tickets(lane)
    if ticket in known:
        return {"ticket": ticket, "status": known[ticket]["state"], "duplicate": True}
    check_limits(lane, len(known))
    with open(os.path.join(draft, "manifest.json"), "wb") as stream:
        stream.write(canonical({"format": "roundkit-manifest/1", "lane": lane["lane"], "entries": entries}))
    try:
        os.rename(draft, os.path.join(OUTBOX, key))
    except OSError:
        if not os.path.isdir(os.path.join(OUTBOX, key)):
            raise
        return {"ticket": ticket, "status": "queued", "duplicate": True}
    return {"ticket": ticket, "status": "queued", "duplicate": False}


def check_limits(lane: dict[str, Any], used: int) -> None:
    """Refuse what the coordinator would reject anyway."""
    # Not strptime, which loads the locale's calendar first.
    deadline = datetime.fromisoformat(lane["deadline_utc"][: -len("Z")])
    if datetime.now(timezone.utc) >= deadline.replace(tzinfo=timezone.utc):
        raise Refused("late", f"the lane's deadline {lane['deadline_utc']} has passed")
    if used >= lane["submission_cap"]:
        raise Refused("cap", f"all {lane['submission_cap']} submissions of this lane are used up")


def known_tickets(lane: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is known of every submission so far, by ticket."""
    names = [ticket_name(lane, name) for name in listed(OUTBOX) if re.match(r"[0-9a-f]{64}$", name)]
    known: dict[str, dict[str, Any]] = {name: {"ticket": name, "state": "queued"} for name in names}
    for name in listed(STATUS):
        record = read_json(os.path.join(STATUS, name)) if re.match(r"[^.].*\.json$", name) else None
        if record is not None and "state" in record:
            known[name[: -len(".json")]] = record
    return known


def listed(folder: str) -> list[str]:
    """Return the names in a folder; none when it is missing."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_json(path: str) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None when there is none."""
    try:
        with open(path, "rb") as stream:
            value = json.loads(stream.read().decode("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def status(lane: dict[str, Any], ticket: str | None, wait_s: float) -> dict[str, Any]:
    """Return the state of one ticket or of all, at once or as soon as it changes."""
    end = time.monotonic() + wait_s
    first = now = look(lane, ticket)
    while now == first and not settled(now) and time.monotonic() < end:
        time.sleep(max(0.0, min(POLL_S, end - time.monotonic())))
        now = look(lane, ticket)
    return now


def look(lane: dict[str, Any], ticket: str | None) -> dict[str, Any]:
    """Read the mirror once."""
    known = known_tickets(lane)
    if ticket is None:
        return {"tickets": [known[name] for name in sorted(known)]}
    if ticket not in known:
        raise Refused("unknown-ticket", f"this lane has no ticket {ticket}")
    return known[ticket]


def settled(answer: dict[str, Any]) -> bool:
    """Say whether nothing will change any more."""
    return all(one.get("state") in FINAL_STATES for one in answer.get("tickets", [answer]))


def parse(words: list[str]) -> argparse.Namespace:
    """Read the command line; wrong usage ends with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="round", description="Submit this lane's changes, and see their state."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("submit", help="hand over what changed under the lane's globs")
    state = commands.add_parser("status", help="show what became of submissions")
    state.add_argument("ticket", nargs="?")
    state.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait for a change of state"
    )
    return parser.parse_args(words)


def perform(options: argparse.Namespace) -> dict[str, Any]:
    """Run one command and return its answer."""
    lane = read_json(os.path.join(HOME, "lane.json"))
    if lane is None:
        raise Broken(f"{os.path.join(HOME, 'lane.json')} is missing or damaged")
    return submit(lane) if options.command == "submit" else status(lane, options.ticket, options.wait)


def main(words: list[str]) -> int:
    """Print the answer of one command as one line of JSON, and return the exit code."""
    options = parse(words)
    code = 0
    try:
        answer = perform(options)
    except Refused as refused:
        answer = {"ticket": None, "status": "refused", "code": refused.code, "message": str(refused)}
        code = 3
    except (Broken, OSError, KeyError, ValueError, TypeError) as error:
        answer = {"ticket": None, "status": "broken", "code": "broken", "message": f"{error}"}
        code = 1
    print(json.dumps(answer))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
