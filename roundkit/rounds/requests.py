"""Measurement requests: which two sides, under which schedule, for which purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundkit.models.measurement import (
    MeasurementRequest,
    PlaceNoise,
    ProvisionRef,
    Purpose,
    SessionNoise,
    SideRef,
)
from roundkit.models.round_plan import DeviceSet, RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.rounds.building import pristine_checkout
from roundkit.rounds.layout import RoundFolder
from roundkit.rules.drift import check_order
from roundkit.rules.identity import experiment_name, neutral_name
from roundkit.rules.looks import place_noise, plan_looks, session_noise
from roundkit.rules.schedule import plan_schedule
from roundkit.store import RoundStore


@dataclass(frozen=True)
class Bench:
    """What every experiment of a round shares; ``provision`` is null until there is one, or for ever."""

    folder: RoundFolder
    plan: RoundPlan
    spec: RunSpec
    secret: bytes
    provision: ProvisionRef | None = None

    def checkout_folder(self, name: str) -> Path:
        """Return where the checkout of that name lies; confined commands may learn the path."""
        return self.folder.checkouts / neutral_name(self.secret, f"checkout {name}")

    def work_folder(self, experiment_id: str) -> Path:
        """Return the work folder of an experiment; confined commands may learn the path."""
        return self.folder.trials / neutral_name(self.secret, f"experiment {experiment_id}")


def open_experiment(
    bench: Bench,
    store: RoundStore,
    *,
    purpose: Purpose,
    subject: str,
    lane: str | None,
    baseline: SideRef,
    candidate: SideRef,
    ticket_key: str | None = None,
    device_sets: tuple[DeviceSet, ...] | None = None,
) -> MeasurementRequest:
    """Reserve the next experiment id of a subject and return the request for it.

    A ticket that is given is marked as being measured, in the same transaction. Without ``device_sets`` any
    of the plan's may be used; an A/A check prefers those that were checked least.
    """
    attempt = store.experiments.attempts(subject) + 1
    noise, places = _noise(bench, store, purpose)
    experiment_id = experiment_name(subject, attempt)
    with store.transaction():
        store.experiments.begin(experiment_id, purpose, subject, attempt)
        store.events.add("experiment-started", experiment=experiment_id, purpose=purpose, subject=subject)
        if ticket_key is not None:
            store.tickets.set_measuring(ticket_key)
    return MeasurementRequest(
        format="roundkit-measurement-request/1",
        experiment_id=experiment_id,
        round_id=bench.plan.round_id,
        purpose=purpose,
        subject=subject,
        lane=lane,
        attempt=attempt,
        run_spec=bench.spec,
        baseline=baseline,
        candidate=candidate,
        incumbent_built=str(pristine_checkout(bench.folder, bench.plan)),
        provision=bench.provision,
        device_sets=_sets_for(bench, store, purpose) if device_sets is None else device_sets,
        schedule=plan_schedule(
            bench.secret, bench.spec.round_digest, experiment_id, bench.plan.gates.ab_ba_pairs
        ),
        look_plan=plan_looks(bench.plan.gates, purpose),
        session_noise=noise,
        place_noise=places,
        work_folder=str(bench.work_folder(experiment_id)),
    )


def _noise(
    bench: Bench, store: RoundStore, purpose: Purpose
) -> tuple[SessionNoise | None, tuple[PlaceNoise, ...]]:
    """Return the noise between sessions, of the whole round and of each place where it is known."""
    gates = bench.plan.gates
    if purpose == "aa" or gates.session_checks is None:
        return None, ()
    checks = store.aa_checks.all()
    places = store.experiments.places(check.experiment for check in checks)
    return session_noise(checks, gates), place_noise(checks, places, gates)


def _sets_for(bench: Bench, store: RoundStore, purpose: Purpose) -> tuple[DeviceSet, ...]:
    if purpose != "aa" or len(bench.plan.device_sets) == 1:
        return bench.plan.device_sets
    checks = store.aa_checks.all()
    records = store.experiments.by_id(check.experiment for check in checks)
    return check_order(bench.plan.device_sets, checks, records)
