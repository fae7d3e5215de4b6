"""What an audit of a paired pilot works on: its folder read once, and every tuple's eligibility derived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused, RoundkitError
from roundkit.core.yamlfile import load_yaml, plain, schema_refusals
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.pilot_reader import PilotReader, RecordType
from roundkit.evidence.problem import EvidenceProblem, problem
from roundkit.models.agent_run import AgentRun
from roundkit.models.pilot_cohort import Cohort, Observation, SetupAttempt, Tokens
from roundkit.models.pilot_evidence import TrialFiles
from roundkit.models.pilot_findings import AuthoredFinding, Finding, FindingsFile
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_review import Intervention, Review
from roundkit.models.pilot_trial import ReplayRecord, TrialRecord, TrialStart
from roundkit.rules.pilot_calls import checked_calls
from roundkit.rules.pilot_chain import Chain
from roundkit.rules.pilot_eligibility import eligibility
from roundkit.rules.pilot_interventions import read_interventions
from roundkit.rules.pilot_lines import LinesProblem
from roundkit.rules.pilot_matrix import Attempt, attempts_chain
from roundkit.rules.pilot_overlap import count_once
from roundkit.rules.pilot_reading import Ineligible, bind, parsed, raw
from roundkit.rules.pilot_taxonomy import findings

_REVIEW = f"{layout.REVIEW}/{layout.FINISHED}"


@dataclass(frozen=True)
class PilotMaterial:
    """One pilot's folder in memory.

    Attributes:
        reader: Reads more of it.
        plan: The frozen plan.
        cohort: Every expected tuple with what came of it.
        attempts: Every folder of attempts within the matrix, by name.
        chain: Those and the setup attempts in the order in which they were made.
        authored: Findings that a person wrote.
    """

    reader: PilotReader
    plan: PairedPlan
    cohort: Cohort
    attempts: tuple[Attempt, ...]
    chain: Chain
    authored: tuple[AuthoredFinding, ...]


def read_pilot(path: Path) -> PilotMaterial:
    """Read a pilot that was run here.

    Raises:
        EvidenceProblem: there is no plan that can be read. Whatever is wrong with a trial stands in its
            observation.
    """
    reader = PilotReader(path)
    plan = reader.plan_as_it_lies()
    digest = digest_bytes(reader.read(layout.PLAN))
    replays = _replays(reader)
    observations = [_observation(reader, plan, slot, replays) for slot in plan.schedule]
    cohort = Cohort(
        pilot_id=plan.pilot_id,
        campaign_id=plan.campaign_id,
        question=plan.question,
        provenance=plan.provenance,
        digest=digest,
        tasks=tuple(frozen.task.id for frozen in plan.tasks),
        variants=tuple(frozen.variant.id for frozen in plan.variants),
        repetitions=plan.repetitions,
        plan=plan,
        published=None,
        observations=_each_time_once(observations),
        setup=tuple(_setup(reader, folder) for folder in reader.setup_folders()),
    )
    attempts = tuple(_attempts(reader, reader.trial_folders()))
    chain = attempts_chain((*attempts, *_attempts(reader, reader.setup_folders())))
    return PilotMaterial(reader, plan, cohort, attempts, chain, _authored(reader))


def tokens_of(agent: AgentRun | None) -> Tokens:
    """Return an agent's tokens by component; all unknown where it never ran."""
    if agent is None:
        return Tokens()
    counted = agent.usage.tokens
    return Tokens(
        input=counted.input,
        cached_input=counted.cached_input,
        cache_write=counted.cache_write,
        output=counted.output,
        partial=agent.usage.partial or agent.end_reason != "exited",
    )


def _attempts(reader: PilotReader, folders: Sequence[str]) -> Iterator[Attempt]:
    for folder in folders:
        if not reader.names(folder):
            continue
        start = read_or_none(reader, f"{folder}/{layout.START}", TrialStart)
        record = read_or_none(reader, f"{folder}/{layout.RECORD}", TrialRecord)
        yield Attempt(folder.rpartition("/")[2], start, record)


def read_or_none(reader: PilotReader, name: str, kind: type[RecordType]) -> RecordType | None:
    """Return a record, null where there is none that can be read."""
    try:
        return reader.record(name, kind)
    except EvidenceProblem:
        return None


def _observation(
    reader: PilotReader, plan: PairedPlan, slot: Slot, replays: Sequence[ReplayRecord]
) -> Observation:
    folder = layout.trial_folder(slot.order, slot.tuple_id)
    files = reader.trial_files(folder, slot)
    decided = eligibility(plan, slot, files)
    try:
        trial = bind(files)
    except Ineligible:
        return Observation(
            slot, "unfinished" if reader.names(folder) else "missing", folder, decided, files=files
        )
    record, agent = trial.record, trial.record.agent
    try:
        gateway = checked_calls(trial)
    except Ineligible:
        gateway = ()
    return Observation(
        slot=slot,
        state="recorded",
        folder=folder,
        eligibility=decided,
        process=record.process,
        process_word=record.process,
        detail=record.detail,
        wall_ms=record.wall_ms,
        calls=record.calls,
        failed_calls=record.failed_calls,
        acceptance=record.acceptance.outcome if record.acceptance else None,
        checks=record.acceptance.checks if record.acceptance else (),
        validation_ms=record.validation_ms,
        tokens=tokens_of(agent),
        micro_usd=agent.usage.micro_usd if agent else None,
        agent=agent,
        review=_review(files),
        interventions=_interventions(files),
        gateway=gateway,
        record=record,
        replays=tuple(replay for replay in replays if replay.attempt == record.attempt),
        files=files,
    )


def _each_time_once(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Return observations without the review time that one person spent on several of them at once."""
    pairs = [(row.eligibility, row.files) for row in observations if row.files is not None]
    decided = {each.tuple_id: each for each in count_once(pairs)}
    return tuple(replace(row, eligibility=decided.get(row.tuple_id, row.eligibility)) for row in observations)


def _review(files: TrialFiles) -> Review | None:
    try:
        return parsed(raw(files, _REVIEW), _REVIEW, Review)
    except Ineligible:
        return None


def _interventions(files: TrialFiles) -> tuple[Intervention, ...]:
    try:
        return read_interventions(raw(files, layout.INTERVENTIONS))
    except (Ineligible, LinesProblem):
        return ()


def _replays(reader: PilotReader) -> list[ReplayRecord]:
    """Return every replay that can be read, in their order; the audit says which cannot."""
    names = reader.names(layout.REPLAYS)
    found = [read_or_none(reader, f"{layout.REPLAYS}/{name}", ReplayRecord) for name in names]
    return sorted(filter(None, found), key=lambda replay: replay.replayed_utc)


def _setup(reader: PilotReader, folder: str) -> SetupAttempt:
    name = folder.rpartition("/")[2]
    try:
        record = reader.record(f"{folder}/{layout.RECORD}", TrialRecord)
    except EvidenceProblem as found:
        return SetupAttempt(name, None, f"no record that can be read: {found.refusals[0].code}")
    agent = record.agent
    return SetupAttempt(
        name=name,
        process=record.process,
        detail=record.detail,
        wall_ms=record.wall_ms,
        calls=record.calls,
        failed_calls=record.failed_calls,
        tokens=tokens_of(agent),
        micro_usd=agent.usage.micro_usd if agent else None,
    )


def _authored(reader: PilotReader) -> tuple[AuthoredFinding, ...]:
    """Return what a person wrote into ``findings.yaml``; none where there is no such file.

    Raises:
        EvidenceProblem: it is there and cannot be read.
    """
    try:
        data = reader.read(layout.FINDINGS)
    except EvidenceProblem as found:
        if found.refusals[0].code == "missing-file":
            return ()
        raise
    try:
        content = load_yaml(data, place=layout.FINDINGS)
        return FindingsFile.model_validate(plain(content)).findings
    except ValidationError as error:
        raise EvidenceProblem(schema_refusals(error.errors(), content, layout.FINDINGS)) from error
    except (Refused, RoundkitError) as error:
        raise problem("malformed", str(error), where=layout.FINDINGS) from error


def findings_of(material: PilotMaterial) -> tuple[Finding, ...]:
    """Return a pilot's findings, ranked."""
    return findings(material.cohort, material.authored)
