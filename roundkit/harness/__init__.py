"""The two-process benchmark harness: a driver that holds the clock, a worker that holds the candidate.

An owner writes two short files. The *driver* is protected: it makes the inputs, asks the worker for
answers over a pipe, and keeps clock, counters and result where no candidate can reach them::

    from roundkit.harness import Session, driver

    def run(session: Session) -> None:
        for repetition in range(session.repetitions):
            request = make_inputs(session.random(repetition))
            with session.timed():
                answer = session.call("search", request)
            session.save(f"repetition-{repetition}", {"request": request, "answer": answer})

    driver(run)

The *worker* names what the candidate offers, and imports it before the driver's clock starts::

    from roundkit.harness import worker

    worker({"search": "searchkit.engine:search_all"})

The coordinator starts both, each inside its own boundary, and connects the standard output of one to
the standard input of the other. This folder is standard library only and imports nothing else of
roundkit, so that it can be mounted alone.
"""

from roundkit.harness.driver_side import (
    EXIT_CANDIDATE_RAISED,
    EXIT_NOT_STARTED_BY_COORDINATOR,
    EXIT_WORKER_LOST,
    CandidateRaised,
    Session,
    driver,
)
from roundkit.harness.frames import FRAME_LIMIT_BYTES, PipeBroken
from roundkit.harness.worker_side import worker

__all__ = [
    "EXIT_CANDIDATE_RAISED",
    "EXIT_NOT_STARTED_BY_COORDINATOR",
    "EXIT_WORKER_LOST",
    "FRAME_LIMIT_BYTES",
    "CandidateRaised",
    "PipeBroken",
    "Session",
    "driver",
    "worker",
]
