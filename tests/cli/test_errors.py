"""Whatever is wrong, a command answers with code, place and remedy, the right exit code, and leaves nothing.

What belongs to somebody else is tried by a user without any rights, all rows in one process of his.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.open_rounds import open_round_directory
from support.ordinary_user import Answer, answer, answers_of_a_stranger, unavailable
from support.pilots import small
from support.sample_evidence import sample_round
from support.small_disk import mounted_disk
from support.synthetic import commit_all, reachable_folder, write_files

from roundkit.core.git import Repository

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "evidence"
SHIPPED = {
    "evidence": EVIDENCE / "code-search/rounds/r01",
    "policy": EVIDENCE / "knobs/pilots/p-versus-s",
    "waves": EVIDENCE / "c-functions",
}
HYPERFINE = '{"results": [{"command": "a", "times": [1.0, 1.1], "exit_codes": [0, 0]}]}'
A = ("--reviewer", "ada")
JUDGED = (*A, "--blinded", "--judgement", "accept")
ROUND = ["launch", "serve", "status", "pause", "resume", "drain", "close", "prune", "trial", "swarmflow"]
PILOT = ["run", "status", "replay"]
WAVES = ["draft", "gate", "status", "stop"]
Row = tuple[tuple[str, ...], int, str]


def of_a_round(name: str) -> Iterator[tuple[str, ...]]:
    """Yield every command that works on a round's directory."""
    yield from ((command, name) for command in ROUND)
    yield ("stop-lane", name, "L1")


def of_a_pilot(name: str) -> Iterator[tuple[str, ...]]:
    """Yield every command that works on a frozen pilot, but for its report and its audit."""
    yield from (("pilot", command, name) for command in PILOT)
    yield ("pilot", "intervene", name, "X", "--kind", "other", "--note", "n")
    yield ("pilot", "review", "packet", name)
    yield ("pilot", "review", "start", name, "X", *A)
    yield ("pilot", "review", "pause", name, "X")
    yield ("pilot", "review", "resume", name, "X")
    yield ("pilot", "review", "finish", name, "X", *JUDGED)
    yield ("pilot", "review", "record", name, "X", "--minutes", "3", *JUDGED)


def of_a_campaign(name: str) -> Iterator[tuple[str, ...]]:
    """Yield every command that works on a wave campaign."""
    yield from (("waves", command, name) for command in WAVES)
    yield ("waves", "report", name, "--out", "mine/x.html")
    yield ("waves", "export", name, "--out", "mine/x")


def writers(place: str, page: str) -> Iterator[tuple[str, ...]]:
    """Yield every command that writes something quickly: folders to ``place``, files to ``page``."""
    yield ("export", "evidence", "--out", place)
    yield ("import", "hyperfine", "hyperfine.json", "--out", place)
    yield ("waves", "export", "waves", "--out", place)
    yield ("notebook", "copy", "round_report", place)
    yield ("pilot", "example", place)
    yield ("pilot", "prepare", "paired/files/pilot.yaml", "--out", place)
    yield ("waves", "example", place)
    yield ("cluster", "cert", place)
    yield ("demo", "--out", place)
    yield ("report", "evidence", "--out", page)
    yield ("pilot", "report", "policy", "--out", page)
    yield ("waves", "report", "waves", "--out", page)
    yield ("notebook", "round_report", "--out", page)
    yield ("notebook", "round_report", "--out", "mine/x.ipynb", "--html", page)
    yield ("measure", "program", "program", "--benchmark", "true", "--json", page)
    yield ("noise", "program", "--benchmark", "true", "--json", page)
    yield ("init", "program", "--benchmark", "true", "--validator", "true", "--no-noise", "--dir", place)
    yield ("replay", "HEAD~1..HEAD", "--repository", "program", "--benchmark", "true", "--out", place)


def edited(path: Path, before: bytes, after: bytes) -> None:
    data = path.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, after, 1))


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """Things of every kind: whole, somebody else's, edited behind their backs, and nothing at all."""
    with reachable_folder() as folder:
        for name, source in SHIPPED.items():
            for copy in (name, f"{name}-sealed", f"{name}-edited"):
                shutil.copytree(source, folder / copy)
        for name, file in (("evidence", "index.json"), ("policy", "plan.json"), ("waves", "plan.json")):
            (folder / f"{name}-sealed" / file).chmod(0)
        edited(folder / "evidence-edited/round-ledger.json", b'"pass"', b'"fail"')
        edited(folder / "policy-edited/plan.json", b'"repetitions":3', b'"repetitions":2')
        edited(folder / "waves-edited/plan.json", b'"campaign_id":"', b'"campaign_id":"x')
        for name in ("round", "round-edited"):
            open_round_directory(folder / name, sample_round(), measured=0).store.chmod(0o700)
        edited(folder / "round-edited/round-plan.json", b'"round_id":"', b'"round_id":"x')
        for name in ("paired", "paired-edited"):
            (folder / name).mkdir()
            small(folder / name).freeze()
        edited(folder / "paired-edited/pilot/inputs/tasks/off-by-one/prompt", b"", b"More: ")
        write_files(folder / "program", {"bench.py": "pass\n"})
        program = Repository(folder / "program")
        program.git("init", "-q", "-b", "main")
        commit_all(program, ["."], "A program")
        write_files(folder / "program", {"prog.py": "pass\n"})
        commit_all(program, ["."], "More of it")
        for name in ("empty", "locked", "read-only"):
            (folder / name).mkdir()
        (folder / "locked").chmod(0)
        (folder / "file").write_text("mine")
        (folder / "hyperfine.json").write_text(HYPERFINE)
        yield folder


def told(found: Answer, code: int, said: str) -> None:
    """Check one answer: exit code, sentence, remedy; an audit's is a table, and a wrong usage Typer's box."""
    assert (found.code, "Traceback" in found.printed) == (code, False), found.printed
    assert said in found.printed, found.printed
    if code == 3:
        assert "roundkit: [" in found.printed
        assert "\n    → " in found.printed, found.printed


SOMEBODY_ELSES: list[Row] = [
    *((words, 2, "not readable") for words in of_a_round("locked")),
    (("report", "locked", "--out", "mine/x.html"), 2, "not readable"),
    *((words, 3, "[not-permitted]") for words in of_a_round("round")),
    *((("waves", name, "waves-sealed"), 3, "[not-permitted]") for name in WAVES),
    (("waves", "stop", "waves"), 3, "[not-permitted]"),
    (("report", "evidence-sealed", "--out", "mine/x.html"), 3, "[not-permitted] index.json"),
    (("export", "evidence-sealed", "--out", "mine/x"), 3, "[not-permitted] index.json"),
    (("audit", "evidence-sealed"), 1, "[not-permitted]"),
    (("pilot", "run", "policy-sealed"), 3, "[not-permitted]"),
    (("pilot", "status", "policy-sealed"), 3, "[not-permitted]"),
    (("measure", "locked", "locked", "--benchmark", "true"), 3, "[not-permitted]"),
    *((words, 3, "[") for words in writers("read-only/x", "read-only/x.html")),
]


@pytest.mark.needs_root
@pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")
def test_what_belongs_to_somebody_else_is_refused_with_what_to_do(room: Path) -> None:
    before = {path.name for path in room.iterdir()}
    home = room / "mine"
    found = answers_of_a_stranger(room, home, [words for words, _, _ in SOMEBODY_ELSES])
    for (words, code, said), one in zip(SOMEBODY_ELSES, found, strict=True):
        told(one, code, said)
        assert code == 2 or "ermi" in one.printed, words
    assert {path.name for path in room.iterdir()} - before == {"mine"}
    assert not any(path.name.startswith(("x", ".x")) for path in home.rglob("*"))
    assert list((room / "read-only").iterdir()) == []


EMPTY: list[Row] = [
    *((words, 3, "[not-a-round]") for words in of_a_round("empty")),
    *((words, 3, "[no-pilot]") for words in of_a_pilot("empty")),
    *((words, 3, "[no-campaign]") for words in of_a_campaign("empty")),
    (("report", "empty", "--out", "mine/x.html"), 3, "[no-evidence]"),
    (("pilot", "report", "empty", "--out", "mine/x.html"), 3, "[no-evidence]"),
    (("audit", "empty"), 1, "[no-evidence]"),
    (("pilot", "audit", "empty"), 1, "[missing-file]"),
    (("export", "empty", "--out", "mine/x"), 3, "[no-ledger]"),
    (("import", "openevolve", "empty", "--out", "mine/x"), 3, "[missing-file]"),
    (("init", "empty", "--benchmark", "true"), 3, "[not-a-repository]"),
    (("replay", "A..B", "--repository", "empty", "--benchmark", "true", "--out", "x"), 3, "[range]"),
]
A_FILE: list[Row] = [
    *((words, 3, "[not-a-round]") for words in of_a_round("file")),
    *((words, 3, "[no-pilot]") for words in of_a_pilot("file")),
    *((words, 3, "[no-campaign]") for words in of_a_campaign("file")),
    *((words, 3, "[") for words in writers("file", "empty")),
    (("worker", "--scheduler", "tcp://127.0.0.1:1", "--device-sets", "empty"), 3, "[missing-file]"),
    (("devices", "--device-sets", "empty"), 3, "[missing-file]"),
    (("measure", "--from", "empty"), 3, "[missing-file]"),
    (("prepare", "--campaign", "empty", "--propose", "2"), 3, "[missing-file]"),
    (("pilot", "prepare", "empty", "--out", "mine/x"), 3, "[missing-file]"),
    (("pilot", "simulate", "empty"), 3, "[missing-file]"),
    (("waves", "run", "empty", "--dir", "mine/x"), 3, "[missing-file]"),
    (("import", "pyperf", "empty", "--out", "mine/x"), 3, "[missing-file]"),
]
EDITED: list[Row] = [
    *((words, 3, "[plan-changed]") for words in of_a_round("round-edited")),
    (("report", "round-edited", "--out", "mine/x.html"), 3, "[plan-changed]"),
    (("export", "round-edited", "--out", "mine/x"), 3, "[plan-changed]"),
    (("launch", "round", "--digest", "0" * 64), 3, "[digest-mismatch]"),
    (("audit", "evidence-edited"), 1, "[wrong-digest]"),
    (("export", "evidence-edited", "--out", "mine/x"), 3, "[wrong-digest]"),
    (("audit", "evidence", "--expect", "0" * 64), 1, "expected 0000"),
    (("pilot", "run", "policy-edited"), 3, "[plan-changed]"),
    (("pilot", "status", "policy-edited"), 3, "[plan-changed]"),
    (("pilot", "audit", "policy", "--expect", "0" * 64), 1, "expected 0000"),
    (("pilot", "run", "paired-edited/pilot"), 3, "[input-changed]"),
    (("pilot", "audit", "paired-edited/pilot"), 1, "FAILED"),
    *((words, 3, "[plan-changed]") for words in of_a_campaign("waves-edited") if "stop" not in words),
]
MISSING: list[Row] = [
    (("replay", "HEAD~1..HEAD", "--repository", "program", "--benchmark", program, "--out", "x"), 3, said)
    for program, said in (
        ("no-such-program", "[command-missing] --benchmark: there is no program 'no-such-program'"),
        ("/no/such/program", "[command-missing] --benchmark: there is no program /no/such/program"),
    )
]


@pytest.mark.parametrize(("words", "code", "said"), [*EMPTY, *A_FILE, *EDITED, *MISSING])
def test_n02_a_wrong_place_is_answered_with_what_to_do(
    room: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(room)
    monkeypatch.setenv("COLUMNS", "200")
    before = {path.name for path in room.iterdir()}
    told(answer(words), code, said)
    assert {path.name for path in room.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "free"),
    [
        (("export", "evidence", "--out", "X"), 24),
        (("export", "evidence", "--out", "X", "--format", "csv"), 24),
        (("export", "evidence", "--out", "X", "--format", "json"), 24),
        (("import", "hyperfine", "hyperfine.json", "--out", "X"), 4),
        (("waves", "export", "waves", "--out", "X"), 24),
        (("waves", "example", "X", "--targets", "20"), 24),
        (("pilot", "example", "X"), 24),
        (("pilot", "prepare", "paired/files/pilot.yaml", "--out", "X"), 24),
        (("cluster", "cert", "X"), 4),
        (("init", "program", "--benchmark", "true", "--validator", "true", "--no-noise", "--dir", "X"), 24),
    ],
)
def test_a_full_disk_is_told_with_its_place_and_keeps_no_half(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], free: int
) -> None:
    monkeypatch.chdir(room)
    with mounted_disk(tmp_path, 1) as disk:
        (disk / "filler").write_bytes(bytes((1 << 20) - free * 1024))
        found = answer([str(disk / "made") if word == "X" else word for word in words])
        assert [path.name for path in disk.iterdir()] == ["filler"]
        assert f"roundkit: [disk-full] {disk / 'made'}" in found.printed
    assert found.code == 1
    assert "No space left on device\n    → make room and run it again" in found.printed
    assert "Traceback" not in found.printed


def test_a_packet_that_a_full_disk_cut_short_can_be_made_again(tmp_path: Path) -> None:
    """Half of a packet would leave the observation ineligible for good."""
    with mounted_disk(tmp_path, 8) as disk:
        folder, _ = small(disk).freeze()
        assert answer(["pilot", "run", str(folder.root)]).code == 0
        with (disk / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(1 << 12)):
                    pass
            except OSError:
                pass
        words = ["pilot", "review", "packet", str(folder.root), "--all"]
        assert "[disk-full]" in answer(words).printed
        (disk / "filler").unlink()
        assert answer(words).printed.count("not-started") == 2
