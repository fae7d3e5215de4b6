"""One tuple: its slot is used, its agent runs behind the gateway, and whatever comes of it is kept."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from time import monotonic

from roundkit.agents.run import ReadyAgent, redaction_of, run_agent
from roundkit.core.clock import MS_IN_S, Deadline, both_clocks, is_expired, now_utc
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.core.files import sync_folder, write_new
from roundkit.evidence import pilot_layout as layout
from roundkit.measure.trees import copy_tree, remove_tree
from roundkit.models.agent_run import AgentEnd
from roundkit.models.clocks import ClockPair
from roundkit.models.pilot_plan import FrozenTask, PairedPlan
from roundkit.models.pilot_trial import LedgerState, TrialRecord, TrialStart
from roundkit.pilots.acceptance import decide
from roundkit.pilots.agent import Bench, ready_agent
from roundkit.pilots.archive import candidate_diff, settle, whole_tree
from roundkit.pilots.folder import PilotFolder, TrialPlace
from roundkit.pilots.gateway.drift import Drift
from roundkit.pilots.gateway.files import CandidateFiles
from roundkit.pilots.gateway.programs import Program
from roundkit.pilots.gateway.service import GatewayService
from roundkit.pilots.gateway.tools import Tools
from roundkit.pilots.gateway.wire import Wire
from roundkit.pilots.interventions import create_ledger
from roundkit.pilots.trial_record import Course, write_record
from roundkit.rules.pilot_authority import pilot_refusal
from roundkit.rules.pilot_outcome import process_outcome, prompt_bytes
from roundkit.rules.pilot_wire import presentation_of

_ESCAPED = 6
"""Bytes that one byte of a file may take in a message."""
_AROUND_BYTES = 1 << 16
_PART = ".candidate"


@dataclass
class Trial:
    """One attempt, from its start to its record.

    Attributes:
        folder: The pilot's folder.
        plan: The frozen plan.
        place: The attempt.
        previous: Digest of the record of the attempt before it; null for the first one.
        ledgers: Ledgers of earlier attempts that had grown since their records.
        started_utc: When its slot was used.
    """

    folder: PilotFolder
    plan: PairedPlan
    place: TrialPlace
    previous: str | None = None
    ledgers: tuple[LedgerState, ...] = ()
    started_utc: datetime = field(default_factory=now_utc)

    def run(self) -> TrialRecord:
        """Run the tuple, and keep what comes of it.

        Raises:
            Refused: nothing was started: the agent or its boundary does not hold, or the slot is used.
            ConfinementUnavailable: the host cannot build a boundary.
        """
        bench = Bench(self.folder.work / self.place.attempt)
        bench.lay_out()
        try:
            prompt = self._prompt()
            ready = ready_agent(self.folder, self.plan, self.place, bench, prompt)
            self._use_slot()
            return self._kept(ready, bench, prompt)
        finally:
            bench.clear()

    @property
    def _task(self) -> FrozenTask:
        return self.plan.task(self.place.task)

    @property
    def _candidate(self) -> Path:
        return self.place.path / layout.CANDIDATE

    def _prompt(self) -> bytes:
        root, variant = self.folder.root, self.plan.variant(self.place.variant)
        guide = None
        if variant.guide_sha256 is not None:
            guide = (root / layout.variant_guide(self.place.variant)).read_bytes()
        return prompt_bytes(guide, (root / layout.task_input(self.place.task, "prompt")).read_bytes())

    def _use_slot(self) -> None:
        """Take the slot for good; from here on an attempt was made.

        Its folder comes with its start, so that there is none of which nobody can say what was before it.

        Raises:
            Refused: ``slot-used``; ``not-authorized``, where that ended while the agent was made ready.
        """
        clock = ClockPair.of(both_clocks())
        self.started_utc = clock.utc if clock is not None else now_utc()
        if (refusal := pilot_refusal(self.plan, (), self.started_utc)) is not None:
            raise Refused(refusal)
        start = TrialStart(
            format="roundkit-pilot-start/1",
            plan_sha256=self.plan.digest(),
            previous_sha256=self.previous,
            tuple_id=self.place.tuple_id,
            order=None if self.place.slot is None else self.place.slot.order,
            attempt=self.place.attempt,
            started_utc=self.started_utc,
            started_clock=clock,
            ledgers=self.ledgers,
        )
        making = self.folder.work / f"{self.place.attempt}.starting"
        remove_tree(making)
        making.mkdir()
        write_new(making / layout.START, start.to_bytes())
        self.place.path.parent.mkdir(exist_ok=True)
        try:
            making.rename(self.place.path)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise
            said = f"{self.place.name} was attempted before"
            raise refuse("slot-used", said, place=str(self.place.path)) from None
        sync_folder(self.place.path.parent)

    def _kept(self, ready: ReadyAgent, bench: Bench, prompt: bytes) -> TrialRecord:
        """Run the agent and record what came of it; what breaks is recorded too, and goes on up."""
        try:
            self._lay_out(prompt)
            record = self._ran(ready, bench, prompt)
        except KeyboardInterrupt:
            self._record(Course("aborted", "it was interrupted"))
            raise
        except (RoundkitError, OSError) as error:
            self._record(Course("error", f"the runner broke: {error}"))
            raise
        return record

    def _lay_out(self, prompt: bytes) -> None:
        path = self.place.path
        create_ledger(path)
        write_new(path / layout.PROMPT, prompt)
        fixture = self.folder.root / layout.task_input(self.place.task, "fixture")
        copy_tree(fixture, path / _PART)
        if whole_tree(path / _PART) != self._task.fixture_sha256:
            raise refuse("input-changed", "the fixture is not the frozen one", place=str(fixture))
        (path / _PART).rename(self._candidate)

    def _ran(self, ready: ReadyAgent, bench: Bench, prompt: bytes) -> TrialRecord:
        policy = self.plan.policy
        wire = Wire(
            bench.gateway,
            self.place.path / layout.WIRE,
            most_message_bytes=_ESCAPED * policy.file_bytes + _AROUND_BYTES,
            most_bytes=policy.wire_bytes,
            clean=redaction_of(ready).bytes,
        )
        service = self._service(wire)
        began = monotonic()
        with service.serving():
            run = run_agent(ready, deadline=Deadline.after(policy.trial_s), halt=self._halt(service))
        wall_ms = round((monotonic() - began) * MS_IN_S)
        process, detail = process_outcome(run, service.failure)
        data = (self.place.path / layout.WIRE).read_bytes()
        presentation = presentation_of(self.place.name, prompt, data)
        write_new(self.place.path / layout.PRESENTATION, presentation.to_bytes())
        cut = [layout.WIRE] if wire.cut else []
        for name, log in ((layout.STDOUT, run.stdout), (layout.STDERR, run.stderr)):
            cut += [name] if log.kept_bytes < log.bytes else []
        return self._checked(Course(process, detail, run, wall_ms, truncated=tuple(cut)))

    def _checked(self, course: Course) -> TrialRecord:
        """Take the candidate as it was left, and decide whether it is accepted."""
        if settle(self._candidate):
            course = replace(course, truncated=(*course.truncated, layout.CANDIDATE))
        fixture = self.folder.root / layout.task_input(self.place.task, "fixture")
        write_new(self.place.path / layout.DIFF, candidate_diff(fixture, self._candidate))
        began = monotonic()
        acceptance = decide(self.plan, self._task, self.folder.root, self._candidate)
        validation_ms = round((monotonic() - began) * MS_IN_S)
        return self._record(replace(course, validation_ms=validation_ms, acceptance=acceptance))

    def _record(self, course: Course) -> TrialRecord:
        clock = ClockPair.of(both_clocks())
        ended_utc = clock.utc if clock is not None else now_utc()
        return write_record(self.plan, self.place, course, self.started_utc, ended_utc, clock)

    def _service(self, wire: Wire) -> GatewayService:
        policy, root, drift = self.plan.policy, self.folder.root, self._task.task.drift
        wanted = self.plan.variant(self.place.variant).variant.tools
        offered = [tool for tool in self.plan.tools if tool.name in wanted]
        programs = {
            tool.name: Program(tool.argv, None if tool.files is None else root / layout.tool_files(tool.name))
            for tool in offered
        }
        made = None
        if drift is not None:
            content = (root / layout.task_input(self.place.task, "drift")).read_bytes()
            made = Drift(self.place.name, drift.path, content, self.place.path)
        files = CandidateFiles(self._candidate, policy.file_bytes)
        return GatewayService(
            wire,
            Tools(files, programs, self.plan.runtime, policy.limits, policy.call_s, wire.stop_read),
            offered,
            self.place.path / layout.CALLS,
            most_calls=policy.calls,
            drift=made,
        )

    def _halt(self, service: GatewayService) -> Callable[[], AgentEnd | None]:
        allowed = self.plan.authorization

        def halt() -> AgentEnd | None:
            over = allowed is not None and is_expired(allowed.until_utc, now_utc())
            return "killed" if over else service.halt()

        return halt
