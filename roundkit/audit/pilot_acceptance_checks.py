"""The checks of a paired pilot's acceptance: it follows from the task's checks, and was decided again."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.pilot_material import PilotMaterial
from roundkit.audit.pilot_time_checks import replay_problems
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.problem import EvidenceProblem
from roundkit.models.pilot_cohort import Observation
from roundkit.models.pilot_trial import Acceptance, ReplayRecord
from roundkit.rules.pilot_outcome import acceptance_of, same_acceptance


def check_acceptance(material: PilotMaterial) -> list[Check]:
    """Check that acceptance follows from the checks, and that each was decided again with the same result."""
    rows = material.cohort.observations
    decided = sum(row.acceptance is not None for row in rows)
    older = sum(not replay.is_named_by_digest for row in rows for replay in row.replays)
    agreed = f"{decided} candidates, each decided twice"
    agreed += f"; {older} replays of an older format, whose digest no name holds" if older else ""
    return conclude("acceptance", _acceptance_problems(material), agreed)


def _acceptance_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    for row in material.cohort.observations:
        acceptance = row.record.acceptance if row.record is not None else None
        if acceptance is None:
            continue
        wanted = [check.id for check in material.plan.task(row.slot.task).task.checks]
        if [check.check for check in acceptance.checks] != wanted:
            yield Disagreement(row.tuple_id, "the checks are not those of the plan")
        computed = acceptance_of(acceptance.candidate_sha256, acceptance.checks)
        if computed != acceptance:
            yield differs(row.tuple_id, "acceptance", _in_words(acceptance), _in_words(computed))
        yield from _result_problems(material, row, acceptance)
        found = row.files.candidate_sha256 if row.files is not None else None
        if found != acceptance.candidate_sha256:
            yield differs(row.tuple_id, "the archived candidate", acceptance.candidate_sha256, found)
        yield from _replay_problems(material, row)
        yield from replay_problems(row)
    yield from _stray_replays(material)


def _in_words(acceptance: Acceptance) -> str:
    return acceptance.outcome + (f" ({acceptance.reason})" if acceptance.reason else "")


def _result_problems(
    material: PilotMaterial, row: Observation, acceptance: Acceptance
) -> Iterator[Disagreement]:
    """Yield results that cannot be: without a reason or an output, or of a check that cannot be made here."""
    frozen = {check.id: check for check in material.plan.task(row.slot.task).task.checks}
    for check in acceptance.checks:
        if (check.outcome == "unavailable") != (check.reason is not None):
            yield Disagreement(
                row.tuple_id, f"check {check.check} is {check.outcome} with the reason {check.reason}"
            )
        outputs = (check.stdout_sha256, check.stderr_sha256)
        if check.outcome != "unavailable" and None in outputs:
            yield Disagreement(
                row.tuple_id, f"check {check.check} is {check.outcome} without what it printed"
            )
        wanted = frozen[check.check].unavailable if check.check in frozen else None
        if wanted is not None and (check.reason, *outputs) != (wanted, None, None):
            yield differs(row.tuple_id, f"check {check.check}", check.reason or check.outcome, wanted)


def _replay_problems(material: PilotMaterial, row: Observation) -> Iterator[Disagreement]:
    acceptance = row.record.acceptance if row.record is not None else None
    if not row.replays:
        yield Disagreement(
            row.tuple_id, "[not-replayed] acceptance was never decided again: roundkit pilot replay"
        )
    for replay in row.replays:
        yield from _result_problems(material, row, replay.acceptance)
        again = replay.acceptance
        if acceptance_of(again.candidate_sha256, again.checks) != again:
            yield Disagreement(row.tuple_id, "a replay's acceptance does not follow from its checks")
        if acceptance is None or again.outcome != acceptance.outcome or not replay.agrees:
            stands = acceptance.outcome if acceptance else None
            yield differs(row.tuple_id, "acceptance", stands, again.outcome)
        elif again.candidate_sha256 != acceptance.candidate_sha256:
            yield Disagreement(row.tuple_id, "acceptance was decided again over another candidate")
        elif not same_acceptance(acceptance, again):
            yield Disagreement(
                row.tuple_id, "a replay says that it agrees, and its checks came out another way"
            )


def _stray_replays(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield replays that cannot be read, or are of nothing that was decided."""
    known = {
        (row.tuple_id, row.record.attempt)
        for row in material.cohort.observations
        if row.record is not None and row.record.acceptance is not None
    }
    for name in material.reader.names(layout.REPLAYS):
        if name.startswith("."):
            continue  # begun, and not written
        where = f"{layout.REPLAYS}/{name}"
        try:
            replay = material.reader.record(where, ReplayRecord)
        except EvidenceProblem as problem:
            yield Disagreement(where, f"[{problem.refusals[0].code}] {problem.refusals[0].message}")
            continue
        if (said := _name_problem(material, name, replay)) is not None:
            yield Disagreement(where, said)
        if (replay.tuple_id, replay.attempt) not in known:
            yield Disagreement(
                where, f"is of no attempt that was decided: {replay.tuple_id}, {replay.attempt}"
            )


def _name_problem(material: PilotMaterial, name: str, replay: ReplayRecord) -> str | None:
    """Say how a replay is not the one that its name binds; null where it is, or may be older."""
    if not replay.is_named_by_digest:
        return f"is of {replay.format}, which no pilot with a seal has" if material.plan.is_sealed else None
    wanted = layout.replay_name(replay.tuple_id, replay.digest())
    return None if name == wanted else f"was changed, or renamed: by its bytes it is {wanted}"
