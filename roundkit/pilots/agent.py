"""One trial's agent: what it is told, where it works, and its one way to the task's files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from roundkit.agents.contract import AgentTask, Gateway
from roundkit.agents.drivers import DRIVERS
from roundkit.agents.grant import LanePlace, find_program
from roundkit.agents.run import ReadyAgent, make_ready
from roundkit.core.clock import now_utc
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.plan_seal import SEAL
from roundkit.host.confine import Mount
from roundkit.measure.boundary import runtime_mounts
from roundkit.measure.trees import remove_tree
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.pilot_plan import PairedPlan
from roundkit.pilots.folder import PilotFolder, TrialPlace
from roundkit.pilots.gateway.wire import SHIM, furnish

SCRATCH_AT = Path("/pilot/scratch")
GATEWAY_AT = Path("/pilot/gateway")
SCRIPTS_AT = Path("/pilot/scripts")


@dataclass(frozen=True)
class Assignment:
    """What an agent is set to, as drivers see it."""

    id: str
    model: str | None
    agent: LaneAgent
    globs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """An agent's private places on the host while it lives, in the pilot's ``work``."""

    root: Path

    @property
    def gateway(self) -> Path:
        """The pipes."""
        return self.root / "gateway"

    @property
    def scratch(self) -> Path:
        """Its working folder, empty at the start."""
        return self.root / "scratch"

    @property
    def home(self) -> Path:
        """Its home."""
        return self.root / "home"

    def lay_out(self) -> None:
        """Make the places anew; what a killed run left there goes."""
        self.clear()
        self.root.mkdir(parents=True)
        self.root.chmod(0o711)
        self.scratch.mkdir()
        furnish(self.gateway)

    def clear(self) -> None:
        """Remove the places."""
        remove_tree(self.root)


def ready_agent(
    folder: PilotFolder, plan: PairedPlan, place: TrialPlace, bench: Bench, prompt: bytes
) -> ReadyAgent:
    """Make a trial's agent ready, and check that it can run at all. Nothing is used up by that.

    Args:
        folder: The pilot's folder.
        plan: The frozen plan.
        place: The attempt.
        bench: Its places, laid out.
        prompt: What it is told.

    Raises:
        Refused: its program, flags, keys or boundary do not hold.
        ConfinementUnavailable: the host cannot build the boundary.
    """
    driver = DRIVERS[plan.model.harness]
    agent = plan.model.agent
    label = place.tuple_id or f"{place.task}.{place.variant}.setup"
    task = AgentTask(
        round_id=plan.pilot_id,
        round_digest=plan.digest(),
        lane=Assignment(label, plan.model.model, agent),
        clone=SCRATCH_AT,
        prompt=prompt.decode(),
        program=find_program(driver, agent),
        ordinal=1,
        caps=plan.policy.caps,
        deadline_utc=now_utc() + timedelta(seconds=plan.policy.trial_s),
        remaining_s=plan.policy.trial_s,
        gateway=_gateway(folder, plan, bench),
    )
    where = LanePlace(
        home=bench.home.resolve(),
        hidden=tuple(folder.root / name for name in _hidden()),
        log=place.path / layout.AGENT,
        limits=agent.limits or plan.policy.limits,
        scratch=bench.scratch.resolve(),
    )
    return make_ready(driver, task, where)


def _gateway(folder: PilotFolder, plan: PairedPlan, bench: Bench) -> Gateway:
    mounts = [Mount(bench.gateway.resolve(), GATEWAY_AT), *runtime_mounts(plan.runtime)]
    if plan.scripts_sha256 is not None:
        mounts.append(Mount((folder.root / layout.SCRIPTS).resolve(), SCRIPTS_AT))
    named = {Path(name) for name in plan.model.agent.readable}
    return Gateway(
        argv=(plan.runtime.python, "-I", str(GATEWAY_AT / SHIM)),
        mounts=tuple(mount for mount in mounts if mount.at not in named),
    )


def _hidden() -> tuple[str, ...]:
    tasks, variants = f"{layout.INPUTS}/tasks", f"{layout.INPUTS}/variants"
    return (layout.PLAN, SEAL, layout.TRIALS, layout.SETUP, layout.REPLAYS, tasks, variants)
