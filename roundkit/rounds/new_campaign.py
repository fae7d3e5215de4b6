"""A campaign begun in a repository of the owner's: its noise measured, its file written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap

from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository
from roundkit.core.globs import PathIndex
from roundkit.core.outputs import check_new_folder
from roundkit.core.progress import SILENT, Progress
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, plain, read_yaml
from roundkit.models.campaign import CampaignPlan
from roundkit.models.comparison import NoiseReport
from roundkit.rounds.compare.instruments import METRICS
from roundkit.rounds.compare.noise import measure_noise
from roundkit.rounds.compare.options import CompareOptions
from roundkit.rounds.prepare_repository import not_usable, some, uncommitted
from roundkit.rounds.template_files import CHECKOUT_PATH, checked_campaign, program_refusals, words_inside
from roundkit.rules.noise import block_under
from roundkit.rules.proposal import Proposal, propose_gates
from roundkit.rules.quieter import Quieter, quieter_clock
from roundkit.rules.scope import TRICK_FILES, campaign_commands, missing_script

CAMPAIGN = "campaign.yaml"


@dataclass(frozen=True)
class Beginning:
    """A campaign file ready to be written, and what led to it.

    Attributes:
        content: The file's content, with its comments.
        campaign: The same, checked.
        proposal: Its gates.
        noise: The noise behind them; null where it was not measured.
        quieter: CPU time, where it would show much smaller gains than the wall-clock time that decides.
    """

    content: Any
    campaign: CampaignPlan
    proposal: Proposal
    noise: NoiseReport | None
    quieter: Quieter | None


def check_place(repository: Path, folder: Path) -> None:
    """Refuse a campaign that could not begin, before anything is asked or measured for it.

    Raises:
        Refused: as the repository of a campaign is refused by ``prepare``; ``no-branch``; ``exists``:
            nothing is overwritten; ``output-folder``.
    """
    git = Repository(repository)
    problem = not_usable(git, "REPOSITORY")
    if problem is not None:
        raise Refused(problem)
    if git.current_branch() is None or git.resolve("HEAD") is None:
        raise refuse(
            "no-branch", f"{repository} is on no branch that has a commit", place="REPOSITORY",
            remedy="switch to the branch that the campaign is to improve: git switch BRANCH",
        )  # fmt: skip
    if (folder / CAMPAIGN).exists():
        raise refuse(
            "exists", f"{folder / CAMPAIGN} exists", place="--dir",
            remedy="edit it, or choose another folder with --dir",
        )  # fmt: skip
    check_new_folder(folder, "--dir")


def left_out(repository: Path, folder: Path) -> str | None:
    """Say what is not measured since it is in no commit; null where everything is committed.

    Args:
        repository: Top of the working tree.
        folder: Where the campaign is to lie; it may be uncommitted.
    """
    paths = uncommitted(Repository(repository), (folder,))
    if not paths:
        return None
    return (
        f"not committed, so neither measured now nor taken by `roundkit prepare` later: {some(paths)};"
        " commit them, or have git ignore them"
    )


def begin(
    repository: Path,
    folder: Path,
    options: CompareOptions,
    *,
    campaign_id: str,
    measured: bool,
    most_pairs: int,
    known: NoiseReport | None = None,
    progress: Progress = SILENT,
) -> Beginning:
    """Measure what the repository's last commit gives against itself, and make a campaign of it.

    Args:
        repository: Top of the working tree.
        folder: Where the campaign is to lie.
        options: The benchmark, the other commands, and the smallest gain worth keeping.
        campaign_id: Name of the campaign.
        measured: Whether to measure the noise; otherwise the gates are the template's.
        most_pairs: Most pairs that one experiment may take.
        known: The noise where it was measured before, under whichever instrument; it is not measured again.
        progress: Shows each step and the trials.

    Raises:
        Refused: ``command-missing``: a command names what is in no commit; or what no campaign
            may hold.
        RoundkitError: the benchmark cannot be measured, or it was stopped by hand.
    """
    content = read_yaml(shipped("templates") / CAMPAIGN)[1]
    _fill(content, repository, folder, options, campaign_id)
    _check_commands(repository, checked_campaign(plain(content), CAMPAIGN))
    noise = known
    if measured and known is None:
        noise = measure_noise(f"{repository}@HEAD", options, progress=progress)
    gates = content["test_plan"]
    row = None
    if noise is not None:
        row = next(row for row in noise.instruments if row.instrument == options.instrument)
    least = float(gates["min_gain"])
    proposal = propose_gates(
        row,
        pairs=options.planned_pairs or int(gates["ab_ba_pairs"]),
        min_gain=least,
        most_pairs=most_pairs,
    )
    gates["ab_ba_pairs"], gates["min_gain"] = proposal.ab_ba_pairs, proposal.min_gain
    block = None if noise is None else block_under(noise, options.instrument)
    if block is not None:
        gates["noise"] = _in_one_line(block.to_json_value())
    rows = () if noise is None else noise.instruments
    quieter = quieter_clock(rows, options.instrument, min_gain=least)
    return Beginning(content, checked_campaign(plain(content), CAMPAIGN), proposal, noise, quieter)


def _check_commands(repository: Path, campaign: CampaignPlan) -> None:
    git = Repository(repository)
    paths = PathIndex(entry.path for entry in git.tree("HEAD"))
    refusals = []
    for keys, argv in campaign_commands(campaign):
        missing = missing_script(argv, paths, built=campaign.build is not None and keys[0] != "build")
        if missing is not None:
            there = (repository / missing).exists()
            what = "is there, but in no commit" if there else "is no file of the repository"
            remedy = "commit it" if there else "paths are relative to the repository's top"
            if campaign.build is None:
                remedy += "; what a command makes first needs that command in --build"
            refusals.append(Refusal("command-missing", f"{missing!r} {what}", f"--{keys[0]}", remedy))
    refusals += program_refusals(campaign, lambda step, *_: f"--{step}")
    if refusals:
        raise Refused(refusals)


def write_campaign(beginning: Beginning, folder: Path) -> Path:
    """Write the campaign file and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / CAMPAIGN
    atomic_write(target, dump_yaml(beginning.content))
    return target


def _fill(content: Any, repository: Path, folder: Path, options: CompareOptions, campaign_id: str) -> None:
    """Put what was asked for in the place of the template's examples; its comments stay."""
    git = Repository(repository)
    argv, readable = words_inside(repository, options.benchmark)
    timeout_s = options.timeout_s or content["benchmark"]["timeout_s"]
    name, unit = METRICS.get(options.instrument, (options.metric or "", options.unit))
    content["campaign_id"] = campaign_id
    content["repository"]["path"] = os.path.relpath(repository, folder)
    content["repository"]["branch"] = git.current_branch()
    content["metric"].update(name=name, unit=unit, direction=options.direction)
    benchmark = content["benchmark"]
    del benchmark["driver"], benchmark["worker"]
    benchmark.insert(0, "argv", argv)
    benchmark["timeout_s"], benchmark["instrument"] = timeout_s, options.instrument
    if options.instrument != "reported" or unit != "ms":
        benchmark["clock_tolerance"] = None
    for step, words in (("validator", options.validator), ("build", options.build)):
        content[step] = None
        if words is not None:
            inside, more = words_inside(repository, words)
            content[step] = _in_one_line({"argv": inside, "timeout_s": timeout_s})
            readable = sorted({*readable, *more})
    content["target_package"] = options.package
    content["protected_paths"] = list(options.protected_paths or TRICK_FILES)
    content["runtime"]["python"] = options.python or content["runtime"]["python"]
    content["runtime"]["readable"] = sorted({*readable, *options.readable})
    content["environment"]["PYTHONPATH"] = CHECKOUT_PATH
    if options.min_gain is not None:
        content["test_plan"]["min_gain"] = options.min_gain
    content["search_state"]["incumbent_revision"] = git.resolve("HEAD")
    entry = content["search_plan"][0]
    entry["hypothesis"] = "Replace this entry: one direction worth trying, and why it should help."


def _in_one_line(value: dict[str, Any]) -> CommentedMap:
    block = CommentedMap(value)
    block.fa.set_flow_style()
    return block
