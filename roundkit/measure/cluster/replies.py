"""What a worker makes of a request before it measures: whether it can be read, and answers of every kind."""

from __future__ import annotations

from concurrent.futures import Future

import pydantic

from roundkit.core.errors import Refused
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.cluster.spool import run_identity
from roundkit.models.cluster import RemoteReply, RemoteRequest


def asks_for_same(one: RemoteRequest, other: RemoteRequest) -> bool:
    """Say whether two requests are of one round of one store."""
    return (one.store_sha256, one.plan_digest) == (other.store_sha256, other.plan_digest)


def reply_of(remote: RemoteRequest, kind: str, **fields: object) -> RemoteReply:
    """Return an answer of a kind to a request."""
    answer = {"format": "roundkit-cluster-reply/1", "run": remote.run, "kind": kind, **fields}
    return RemoteReply.model_validate(answer)


def refused(remote: RemoteRequest, reason: str, detail: str) -> RemoteReply:
    """Return the answer that a request was not even begun."""
    return reply_of(remote, "refused", reason=reason, detail=detail)


def running_reply() -> Future[RemoteReply]:
    """Return a future that whoever waits for it cannot cancel: the run goes on without them."""
    future: Future[RemoteReply] = Future()
    future.set_running_or_notify_cancel()
    return future


def answered(reply: RemoteReply) -> Future[RemoteReply]:
    """Return a future that is done."""
    future: Future[RemoteReply] = Future()
    future.set_result(reply)
    return future


def read_request(data: bytes) -> RemoteRequest:
    """Read a request from a coordinator.

    Raises:
        MeasurementBroke: ``request-malformed``.
    """
    try:
        remote = RemoteRequest.from_bytes(data, place="request")
    except (Refused, pydantic.ValidationError) as error:
        raise MeasurementBroke("request-malformed", str(error)) from error
    run = run_identity(remote.store_sha256, remote.plan_digest, remote.request.experiment_id)
    if (remote.run, remote.plan_digest) != (run, remote.request.run_spec.round_digest):
        raise MeasurementBroke("request-malformed", "it is not the run that it says it is")
    return remote
