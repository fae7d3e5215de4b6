"""P06: acceptance is decided again from archived bytes alone, and a changed byte is caught and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pilots import MEND, PilotFiles, record_of, small
from support.synthetic import reachable_folder

from roundkit.core.errors import Refused
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import ReplayRecord
from roundkit.pilots.cohort import run_cohort
from roundkit.pilots.folder import PilotFolder, slot_place
from roundkit.pilots.replay import replay
from roundkit.pilots.trial_record import abandon


@pytest.fixture(scope="module")
def _ran() -> Iterator[tuple[PilotFolder, PairedPlan]]:
    with reachable_folder() as folder:
        files = small(folder, 'if "plain" in label:' + MEND.replace("\n", "\n    "))
        pilot, plan = files.freeze()
        run_cohort(pilot, plan)
        shutil.rmtree(files.root)  # nothing but the archive is left
        yield pilot, plan


@pytest.fixture
def ran(_ran: tuple[PilotFolder, PairedPlan], open_folder: Path) -> tuple[PilotFolder, PairedPlan]:
    """A pilot with one tuple that passed and one that failed, in ``open_folder``."""
    shutil.copytree(_ran[0].root, open_folder / "pilot", symlinks=True)
    return PilotFolder(open_folder.resolve() / "pilot"), _ran[1]


def test_p06_acceptance_decided_again_from_the_archive_agrees(ran: tuple[PilotFolder, PairedPlan]) -> None:
    folder, plan = ran
    for _ in (1, 2):
        again = replay(folder, plan)
        assert {made.tuple_id: made.acceptance.outcome for made in again} == {
            "off-by-one.plain.1": "passed",
            "off-by-one.guided.1": "failed",
        }
        assert all(made.agrees for made in again)
        for made in again:
            kept = (folder.replays / f"{made.tuple_id}-{made.digest()}.json").read_bytes()
            assert ReplayRecord.from_bytes(kept, place="") == made
    assert len(list(folder.replays.iterdir())) == 4
    assert [made.tuple_id for made in replay(folder, plan, only="off-by-one.plain.1")] == [
        "off-by-one.plain.1"
    ]


@pytest.mark.parametrize(
    "name",
    ["candidate/pages.py", "wire.jsonl", "calls.jsonl", "prompt.md", "start.json", "presentation.json",
     "candidate.diff", "agent/stdout"],
)  # fmt: skip
def test_p06_a_flipped_byte_in_the_archive_is_caught_and_named(
    ran: tuple[PilotFolder, PairedPlan], name: str
) -> None:
    folder, plan = ran
    trial = next(trial for trial in folder.trials.iterdir() if "plain" in trial.name)
    content = bytearray((trial / name).read_bytes() or b" ")
    content[len(content) // 2] ^= 1
    (trial / name).write_bytes(content)
    with pytest.raises(Refused, match=f"{name} is different") as refused:
        replay(folder, plan)
    assert [row.code for row in refused.value.refusals] == ["archive-changed"]
    assert not list(folder.replays.iterdir())


def _add(trial: Path) -> None:
    (trial / "candidate" / "more.py").write_text("")


def _remove(trial: Path) -> None:
    (trial / "wire.jsonl").unlink()


def _executable(trial: Path) -> None:
    (trial / "candidate" / "pages.py").chmod(0o755)


def _link(trial: Path) -> None:
    (trial / "candidate" / "pages.py").rename(trial.parent / "elsewhere.py")
    (trial / "candidate" / "pages.py").symlink_to(trial.parent / "elsewhere.py")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_add, "candidate/more.py is new"),
        (_remove, "wire.jsonl is missing"),
        (_link, "candidate/pages.py is different"),
        (_executable, "candidate is different"),
    ],
)
def test_p06_whatever_else_changed_in_the_archive_is_named(
    ran: tuple[PilotFolder, PairedPlan], change: Callable[[Path], None], words: str
) -> None:
    folder, plan = ran
    change(next(trial for trial in folder.trials.iterdir() if "plain" in trial.name))
    with pytest.raises(Refused, match=words):
        replay(folder, plan)


def test_p06_a_changed_check_is_caught_too(ran: tuple[PilotFolder, PairedPlan]) -> None:
    folder, plan = ran
    (folder.root / "inputs/tasks/off-by-one/hidden/edges/check.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(Refused, match="hidden/edges"):
        replay(folder, plan)


def test_p06_a_record_that_says_something_else_disagrees(ran: tuple[PilotFolder, PairedPlan]) -> None:
    folder, plan = ran
    trial = next(trial for trial in folder.trials.iterdir() if "guided" in trial.name)
    record = record_of(trial)
    assert record.acceptance is not None
    lie = record.acceptance.model_copy(
        update={
            "outcome": "passed",
            "checks": tuple(row.model_copy(update={"outcome": "passed"}) for row in record.acceptance.checks),
        }
    )
    (trial / "record.json").write_bytes(record.model_copy(update={"acceptance": lie}).to_bytes())
    (made,) = replay(folder, plan, only="off-by-one.guided.1")
    assert (made.agrees, made.acceptance.outcome) == (False, "failed")


def test_what_was_not_decided_is_not_decided_again(open_folder: Path) -> None:
    folder, plan = small(open_folder).freeze()
    slot = plan.schedule[0]
    (folder.trials / f"{slot.order:03d}-{slot.tuple_id}").mkdir()
    abandon(plan, slot_place(folder, slot))
    with pytest.raises(Refused, match="nothing-to-replay"):
        replay(folder, plan)


@pytest.mark.parametrize(
    ("check", "outcome", "reason"),
    [
        ({"argv": ["{python}", "-c", "raise SystemExit(2)"]}, "unavailable", "exit code 2"),
        ({"argv": ["{python}", "-c", "while True: pass"]}, "unavailable", "ended: deadline"),
        ({"argv": ["no-such-program"]}, "unavailable", "exit code 127"),
        (
            {"argv": ["{python}", "-c", "pass"], "unavailable": "no licence here"},
            "unavailable",
            "no licence here",
        ),
        ({"argv": ["{python}", "-c", "open('pages.py', 'w')"]}, "passed", None),
        ({"argv": ["{python}", "-c", "open('{files}/check.py', 'w')"]}, "failed", None),
    ],
)
def test_a_check_passes_fails_or_is_unavailable_with_its_reason(
    open_folder: Path, check: dict[str, Any], outcome: str, reason: str | None
) -> None:
    files: PilotFiles = small(open_folder)

    def only_that(content: dict[str, Any]) -> None:
        hidden = content["tasks"][0]["checks"][1]["hidden"]
        content["tasks"][0]["checks"] = [{"id": "one", "hidden": hidden, **check}]
        content["policy"].update(check_s=3)

    files.edit(only_that)
    folder, plan = files.freeze()
    (record,) = run_cohort(folder, plan, only="off-by-one.plain.1")
    assert record.acceptance is not None
    assert record.acceptance.outcome == outcome
    assert (record.acceptance.reason is None) == (reason is None)
    assert reason is None or reason in (record.acceptance.reason or "")
    assert all(made.agrees for made in replay(folder, plan))
