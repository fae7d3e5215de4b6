"""Resume: only an A/A check that began after the owner asked for it ends a pause."""

from __future__ import annotations

from support.synthetic import knob, scripted_lane

from roundkit.core.clock import now_utc
from roundkit.models.experiment import ExperimentRecord
from roundkit.rounds.control import pause, resume
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.recording import record_aa
from roundkit.rounds.serve import open_bench, serve
from roundkit.store import RoundStore, open_store


def started(store: RoundStore, record: ExperimentRecord, number: int) -> ExperimentRecord:
    """Return the record as one of a further A/A check, which has begun."""
    subject, name = f"aa-{number}", f"aa-{number}.1"
    with store.transaction():
        store.experiments.begin(name, "aa", subject, 1)
    return record.model_copy(update={"experiment_id": name, "subject": subject})


def test_r08_a_check_that_began_before_the_request_ends_no_pause(launched: RoundFolder) -> None:
    scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.5)})
    serve(launched, until="idle", report=lambda _line: None)
    bench = open_bench(launched)
    pause(launched, "the fan is loud")
    resume(launched)
    with open_store(launched.database) as store:
        record = next(one for one in store.experiments.records() if one.purpose == "aa")
        record_aa(bench, store, started(store, record, 2))
        assert store.control.get("paused") == "the fan is loud"
        assert not store.aa_checks.all()[-1].resumes
        later = record.model_copy(update={"started_utc": now_utc(), "ended_utc": now_utc()})
        record_aa(bench, store, started(store, later, 3))
        assert store.control.get("paused") is None
        assert store.aa_checks.all()[-1].resumes
