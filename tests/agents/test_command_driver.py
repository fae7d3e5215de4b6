"""D07: any other agent by a template: each preset's arguments, placeholders, prompt, folders and caps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.agent_tasks import CLONE, RECORDED, agent_task
from support.synthetic import campaign_repo

from roundkit.agents.drivers.command import Command
from roundkit.agents.drivers.presets import load_preset, preset_names
from roundkit.core.errors import Refused
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.lane_command import CommandTemplate
from roundkit.models.round_plan import LaneBudget

PROMPT_FILE = "/home/lane/lane-prompt.md"
PROGRAM = "/opt/agent/bin/agent"
SUBMITTING = ("/bin/sh", "-c", '"$@"; code=$?; .roundkit/round submit >&2; exit $code', "agent")

ARGUMENTS = {
    "opencode": "run --format json --auto --pure --model p/m",
    "pi": "--print --mode json --offline --no-extensions --no-skills --no-prompt-templates --model p/m",
    "gemini": "--output-format stream-json --approval-mode yolo --skip-trust --model p/m",
    "copilot": "--allow-all-tools --allow-all-paths --no-ask-user --no-auto-update --disable-builtin-mcps "
    "--output-format json --stream off --model p/m",
}


def test_d07_every_preset_is_named() -> None:
    assert preset_names() == ("aider", "copilot", "gemini", "opencode", "pi")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_d07_a_preset_takes_the_prompt_on_standard_input(name: str) -> None:
    template = load_preset(name)
    command = Command().command(agent_task(LaneAgent(command=template), model="p/m"))
    before = SUBMITTING if template.submit_at_end else ()
    assert command.argv == (*before, PROGRAM, *ARGUMENTS[name].split())
    assert command.stdin == b"# Lane L1\n"
    assert command.files == ()


def test_d07_aider_takes_its_prompt_from_a_file_and_leaves_nothing_in_the_clone() -> None:
    command = Command().command(agent_task(LaneAgent(command=load_preset("aider")), model="p/m"))
    assert command.stdin == b""
    assert [(file.content, str(file.at)) for file in command.files] == [(b"# Lane L1\n", "lane-prompt.md")]
    argv = command.argv[len(SUBMITTING) :]
    assert argv[:3] == (PROGRAM, "--message-file", PROMPT_FILE)
    assert argv[-2:] == ("--model", "p/m")
    assert argv[argv.index("--test-cmd") + 1] == ".roundkit/round submit"
    histories = [argv[argv.index(flag) + 1] for flag in argv if flag.endswith("-history-file")]
    assert len(histories) == 3
    assert all(place.startswith(f"{CLONE}/.roundkit/scratch/") for place in histories)


@pytest.mark.parametrize("name", ["aider", "copilot", "gemini", "opencode", "pi"])
def test_d07_a_lane_without_a_model_leaves_the_choice_to_the_agent(name: str) -> None:
    command = Command().command(agent_task(LaneAgent(command=load_preset(name))))
    assert "--model" not in command.argv
    assert "" not in command.argv
    assert command.git_read_only


@pytest.mark.parametrize("name", ["aider", "copilot", "gemini", "opencode", "pi"])
def test_d07_a_preset_asks_for_the_flags_that_it_uses(name: str) -> None:
    template = load_preset(name)
    assert template.flags
    assert set(template.flags) <= set(template.argv)


def test_d07_placeholders_folders_and_the_allow_list() -> None:
    template = CommandTemplate(
        program="agent",
        argv=("{lane}", "--prompt={prompt_file}", "--for", "{deadline_s}", "{clone}", "{other}", "{{lane}}"),
        prompt="file",
        environment={"WHERE": "{clone}"},
        state={"AGENT_HOME": ".agent/state"},
        git_writable=True,
    )
    agent = LaneAgent(
        command=template,
        hosts=("api.example.com:443",),
        key_variables=("EXAMPLE_KEY",),
        environment={"EXAMPLE_MODE": "quiet"},
    )
    command = Command().command(agent_task(agent))
    wanted = ("L1", f"--prompt={PROMPT_FILE}", "--for", "600", str(CLONE), "{other}", "{L1}")
    assert command.argv == (PROGRAM, *wanted)
    assert command.env["WHERE"] == str(CLONE)
    assert command.env["AGENT_HOME"] == "/home/lane/.agent/state"
    assert command.env["EXAMPLE_MODE"] == "quiet"
    own = {"PATH", "LANG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
    assert set(command.env) == own | {"WHERE", "AGENT_HOME", "EXAMPLE_MODE"}
    assert command.key_variables == ("EXAMPLE_KEY",)
    assert command.hosts == ("api.example.com:443",)
    assert not command.git_read_only


@pytest.mark.parametrize("place", ["/etc", "../other", "a/../b", "", "a//b"])
def test_d07_a_folder_of_its_own_lies_below_its_home(place: str) -> None:
    with pytest.raises(ValueError, match="state"):
        CommandTemplate(program="agent", argv=(), state={"AGENT_HOME": place})


def test_d07_a_lane_without_a_template_is_refused() -> None:
    with pytest.raises(Refused, match="command-missing"):
        Command().command(agent_task(LaneAgent()))


def test_d07_a_cap_that_the_rows_tell_of_ends_the_run() -> None:
    lines = (RECORDED / "opencode-1.18.33" / "finished.jsonl").read_text().splitlines()
    agent = LaneAgent(command=load_preset("opencode"))
    for caps, answers in (
        (LaneBudget(turns=2), 2),
        (LaneBudget(tokens=1101), 2),
        (LaneBudget(micro_usd=1), 1),
    ):
        meter = Command().meter(agent_task(agent, caps=caps))
        said = [meter.read(line) for line in lines]
        first = said.index("budget")
        assert sum('"step_finish"' in line for line in lines[: first + 1]) == answers


def test_d07_prepare_freezes_what_a_preset_stands_for(tmp_path: Path) -> None:
    repo = campaign_repo(tmp_path, ("L1",))
    repo.edit_round(lambda draft: draft["lanes"][0].update(harness="command", agent={"preset": "pi"}))
    plan = repo.freeze(tmp_path / "round")
    agent = plan.lane("L1").agent
    assert agent is not None
    assert (agent.preset, agent.command) == ("pi", load_preset("pi"))


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ({"preset": "nobody"}, "unknown-preset"),
        ({}, "command-missing"),
        ({"preset": "pi", "command": {"program": "x", "argv": []}}, "command-twice"),
        ({"command": {"program": "x", "argv": [], "environment": {"HOME": "/"}}}, "variable-reserved"),
        ({"command": {"program": "x", "argv": [], "state": {"TMPDIR": "tmp"}}}, "variable-reserved"),
        ({"command": {"program": "x", "argv": [], "usage": {"of": "/etc/**"}}}, "wrong-value"),
        ({"command": {"program": "x", "argv": [], "usage": {"of": "../**/x.jsonl"}}}, "wrong-value"),
        ({"command": {"program": "x", "argv": [], "usage": {"of": ""}}}, "wrong-value"),
        (
            {"command": {"program": "x", "argv": [], "environment": {"KEY": "k"}}, "key_variables": ["KEY"]},
            "key-in-plan",
        ),
    ],
)
def test_d07_prepare_refuses_a_lane_that_does_not_say_what_is_started(
    tmp_path: Path, agent: dict[str, object], code: str
) -> None:
    repo = campaign_repo(tmp_path, ("L1",))
    repo.edit_round(lambda draft: draft["lanes"][0].update(harness="command", agent=agent))
    with pytest.raises(Refused) as refused:
        repo.freeze(tmp_path / "round")
    rows = [row for row in refused.value.refusals if row.code == code]
    assert len(rows) == 1
    assert rows[0].place.startswith("round.yaml")
