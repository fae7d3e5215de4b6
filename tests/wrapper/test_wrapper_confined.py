"""R18: the wrapper behind the boundary, with ``.git`` read-only, no network, and another user id."""

from __future__ import annotations

import json
from pathlib import Path

from support.synthetic import CampaignRepo, knob, write_files

from roundkit.core.clock import Deadline
from roundkit.host.confine import Mount, confined_execute
from roundkit.rounds.layout import read_plan


def test_r18_read_only_git_and_no_network(three_lanes: CampaignRepo, open_folder: Path) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    clone = folder.clone("L1")
    write_files(clone, {"knobs/L1.json": knob(0.1), "README.md": "outside"})
    done = confined_execute(
        ["/bin/sh", "-c", "touch .git/x; /usr/bin/python3 .roundkit/round submit; .roundkit/round status"],
        cwd=clone,
        writable=[Mount(clone, clone)],
        readable=[Mount(clone / ".git", clone / ".git")],
        deadline=Deadline.after(60),
        env={"PATH": "/usr/bin:/bin"},
        limits=read_plan(folder).campaign.limits,
    )
    assert done.exit_code == 0, done
    assert "Read-only file system" in done.stderr_tail
    answer, status = map(json.loads, (done.stdout_tail or "").splitlines())
    assert (answer["status"], answer["submitted"], answer["outside_scope"]) == ("queued", 1, ["README.md"])
    assert status["tickets"] == [{"ticket": answer["ticket"], "state": "queued"}]
    assert done.boundary.network == "none"
    assert (folder.outbox("L1")).is_dir()
