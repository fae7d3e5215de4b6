"""The checks of a paired pilot: matrix, frozen inputs, archives, sameness, acceptance, eligibility."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.pilot_ledger_checks import ledger_problems
from roundkit.audit.pilot_material import PilotMaterial, findings_of, read_or_none
from roundkit.audit.pilot_time_checks import authority_problems, order_problems
from roundkit.core.canonical import digest_bytes
from roundkit.core.files import tree_digest
from roundkit.core.text import counted
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.pilot_inputs import bound_inputs
from roundkit.evidence.plan_seal import SEAL
from roundkit.evidence.problem import EvidenceProblem
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.pilot_matrix import matrix_findings, order_notes
from roundkit.rules.pilot_order import schedule, schedule_digest
from roundkit.rules.pilot_summary import totals

_BENIGN = ("missing", "stated", "not-blinded", "clock")
"""Reasons of an ineligible item that say what was not measured; all others say that something is wrong."""

_PENDING = ("[missing]", "[unfinished]", "[not-replayed]")


def is_pending(check: Check) -> bool:
    """Say whether a check failed only because something of the pilot was not done yet."""
    return not check.passed and check.detail.startswith(_PENDING)


def check_plan(material: PilotMaterial) -> list[Check]:
    """Check that the schedule is the one that follows from the plan, and is bound by its digest."""
    plan = material.plan
    without = "" if plan.is_sealed else f"; {plan.format} has no seal, so only its attempts name its digest"
    agreed = f"{len(plan.schedule)} tuples, in the frozen order{without}"
    return conclude("plan", _plan_problems(material), agreed)


def check_inputs(material: PilotMaterial) -> list[Check]:
    """Check the frozen inputs against the plan's digests: they are the same for every variant."""
    return conclude(
        "inputs", _input_problems(material), "fixtures, prompts, rubrics, guides and programs as frozen"
    )


def check_matrix(material: PilotMaterial) -> list[Check]:
    """Check that every expected tuple is there exactly once, and nothing else."""
    plan, attempts = material.plan, material.attempts
    found = [
        Disagreement(each.tuple_id, f"[{each.code}] {each.detail}")
        for each in matrix_findings(plan, attempts, plan_sha256=material.cohort.digest)
    ]
    found += _setup_problems(material)
    found += _stray_files(material)
    late = order_notes(attempts, material.chain.order)
    order = f"; started out of the frozen order: {', '.join(late)}" if late else ", in the frozen order"
    return conclude("tuples", found, f"{len(plan.schedule)} tuples, each exactly once{order}")


def check_chain(material: PilotMaterial) -> list[Check]:
    """Check that each attempt names the record of the one before it, so that none was taken out.

    What a start says of ledgers has to stand in them still.
    """
    chain = material.chain
    agreed = f"{len(chain.order)} attempts, each names the record before it; head {chain.head or 'none yet'}"
    found = [*chain.problems, *ledger_problems(material), *order_problems(material)]
    return conclude("chain", found, agreed)


def check_archives(material: PilotMaterial) -> list[Check]:
    """Check every attempt's files against its record, setup attempts included."""
    count = sum(len(row.record.files) for row in material.cohort.observations if row.record is not None)
    return conclude(
        "archives", _archive_problems(material), f"{counted(count, 'file')}, every size and SHA-256"
    )


def check_sameness(material: PilotMaterial) -> list[Check]:
    """Check that every tuple ran with the one model configuration, and that nothing was substituted."""
    return conclude(
        "sameness", _sameness_problems(material), "one model configuration and policy in every tuple"
    )


def check_eligibility(material: PilotMaterial) -> list[Check]:
    """Derive eligibility anew: evidence that is there and wrong fails, what was not measured does not."""
    counts = totals(material.cohort)
    wrong = [
        Disagreement(row.tuple_id, f"{result.item}: {result.reason}")
        for row in material.cohort.observations
        if row.state == "recorded"
        for result in row.eligibility.items
        if result.reason is not None and not result.reason.startswith(_BENIGN)
    ]
    checks = conclude(
        "eligibility", wrong, f"{counts.eligible} of {counts.expected} observations are eligible"
    )
    lacking = [
        Check("eligibility", True, row.tuple_id, f"ineligible: {result.item}: {result.reason}")
        for row in material.cohort.observations
        if row.state == "recorded"
        for result in row.eligibility.items
        if result.reason is not None and result.reason.startswith(_BENIGN)
    ]
    return [*checks, *lacking]


def check_findings(material: PilotMaterial) -> list[Check]:
    """Check that every finding that a person wrote cites a file of this folder with its digest."""
    found = findings_of(material)
    return conclude("findings", _finding_problems(material), f"{len(found)} findings, each cites a file")


def _plan_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    plan = material.plan
    if (said := material.reader.seal_problem(plan)) is not None:
        yield Disagreement(SEAL, said)
    tasks = [frozen.task.id for frozen in plan.tasks]
    variants = [frozen.variant.id for frozen in plan.variants]
    wanted = schedule(tasks, variants, plan.repetitions, plan.seed)
    if wanted != plan.schedule:
        yield Disagreement(
            layout.PLAN, "the schedule is not the one that follows from tasks, variants and seed"
        )
    if schedule_digest(plan.schedule) != plan.schedule_sha256:
        yield differs(layout.PLAN, "schedule_sha256", plan.schedule_sha256, schedule_digest(plan.schedule))
    if plan.provenance == "model" and plan.authorization is None:
        yield Disagreement(layout.PLAN, "a model was asked without an authorization")
    if plan.provenance != plan.model.agent.provenance:
        yield differs(layout.PLAN, "provenance", plan.provenance, plan.model.agent.provenance)
    yield from authority_problems(material)


def _input_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    for bound in bound_inputs(material.plan):
        yield from (_tree if bound.is_folder else _file)(material, bound.name, bound.sha256)
    known = [bound.name for bound in bound_inputs(material.plan)]
    for name in material.reader.files_below(layout.INPUTS):
        if not any(name == each or name.startswith(f"{each}/") for each in known):
            yield Disagreement(name, "is no input that the plan binds")


def _setup_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield attempts that lie outside of the matrix and were none of that: a slot's attempt, set aside."""
    reader = material.reader
    for folder in reader.setup_folders():
        name = folder.rpartition("/")[2]
        start = read_or_none(reader, f"{folder}/{layout.START}", TrialStart)
        record = read_or_none(reader, f"{folder}/{layout.RECORD}", TrialRecord)
        for file, said in ((layout.START, start), (layout.RECORD, record)):
            if said is None:
                continue  # what of it cannot be read, the archives' check says
            if (said.tuple_id, said.attempt, said.plan_sha256) != (None, name, material.cohort.digest):
                detail = f"[renamed] its {file} is of {said.attempt}, at {said.tuple_id or 'no tuple'}"
                yield Disagreement(folder, detail)


def _stray_files(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield what lies among the attempts and is no folder of one."""
    reader = material.reader
    for folder in (*reader.trial_folders(), *reader.setup_folders()):
        path = reader.root / folder
        if path.is_symlink() or not path.is_dir():
            yield Disagreement(folder, "[extra] is no folder of an attempt")


def _file(material: PilotMaterial, name: str, sha256: str) -> Iterator[Disagreement]:
    try:
        found = digest_bytes(material.reader.read(name))
    except EvidenceProblem as problem:
        yield Disagreement(name, f"[{problem.refusals[0].code}] {problem.refusals[0].message}")
        return
    if found != sha256:
        yield differs(name, "SHA-256", sha256, found)


def _tree(material: PilotMaterial, name: str, sha256: str) -> Iterator[Disagreement]:
    path = material.reader.root / name
    if path.is_symlink() or not path.is_dir():
        yield Disagreement(name, "there is no such folder")
    elif (found := tree_digest(path, skip=frozenset())) != sha256:
        yield differs(name, "tree digest", sha256, found)


def _archive_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    reader = material.reader
    for folder in [*reader.trial_folders(), *reader.setup_folders()]:
        try:
            record = reader.trial_record(folder)
        except EvidenceProblem as problem:
            if reader.names(folder):
                yield Disagreement(folder, f"[{problem.refusals[0].code}] {problem.refusals[0].message}")
            continue
        paths = [file.path for file in record.files]
        if paths != sorted(set(paths)):
            yield Disagreement(f"{folder}/{layout.RECORD}", "does not list its files once, in their order")
        listed = {file.path: file for file in record.files}
        there = reader.digests(folder)
        for name in sorted(listed.keys() | there.keys()):
            if name not in there:
                yield Disagreement(f"{folder}/{name}", "is missing")
            elif name not in listed:
                if not reader.may_be_added(name):
                    yield Disagreement(f"{folder}/{name}", "is not in the record")
            elif not reader.matches(folder, listed[name], there[name]):
                yield Disagreement(f"{folder}/{name}", "is not the file that the record binds")


def _sameness_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    plan, first = material.plan, None
    for row in material.cohort.observations:
        if row.record is None:
            continue
        if row.record.provenance != plan.provenance:
            yield differs(row.tuple_id, "provenance", row.record.provenance, plan.provenance)
        if row.agent is None:
            continue
        first = first or row.agent
        if row.agent.cli_version != first.cli_version:
            yield differs(row.tuple_id, "the tool's version", row.agent.cli_version, first.cli_version)
        reported = row.agent.usage.model
        if reported is not None and plan.model.model is not None and reported != plan.model.model:
            yield differs(row.tuple_id, "the model that the tool reports", reported, plan.model.model)


def _finding_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    known = {row.tuple_id for row in material.cohort.observations}
    known |= {attempt.name for attempt in material.cohort.setup}
    for number, each in enumerate(material.authored, start=1):
        where = f"{layout.FINDINGS}: findings[{number - 1}]"
        if each.tuple_id not in known:
            yield Disagreement(where, f"the pilot has no tuple {each.tuple_id!r}")
        yield from (
            Disagreement(where, f"{found.where}: {found.detail}")
            for found in _file(material, each.artifact, each.sha256)
        )
