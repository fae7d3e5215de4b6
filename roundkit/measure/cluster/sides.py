"""Both sides of a request as folders of this worker, each tree checked against its digest."""

from __future__ import annotations

from pathlib import Path

from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.cluster.cache import TreeCache, check_bundle
from roundkit.models.cluster import RemoteRequest
from roundkit.models.measurement import MeasurementRequest, ProvisionRef, SideRef


def lay_sides(
    cache: TreeCache, remote: RemoteRequest, candidate: bytes, work: Path, *, as_layers: bool
) -> MeasurementRequest:
    """Check every tree of a request, lay its candidate, and return it with this machine's places in it.

    Args:
        cache: Has every tree that the request needs, but the candidate.
        remote: The request.
        candidate: The candidate's bundle.
        work: A folder of this experiment alone.
        as_layers: Whether layers can be laid here.

    Raises:
        MeasurementBroke: ``bundle-digest``, ``bundle-malformed``, ``incumbent-digest``, ``tree-missing``:
            these are not the trees that were announced; ``runtime-missing``: this machine lacks what the
            plan's commands need.
        OSError: something cannot be read or written.
    """
    bundle = work / "candidate.tar"
    bundle.write_bytes(candidate)
    check_bundle(remote.candidate, bundle)
    _refuse_missing(remote)
    layers = remote.base is not None and as_layers
    base = cache.folder(remote.base) if layers and remote.base is not None else None
    cache.check(remote.incumbent)
    if remote.base is not None:
        cache.check(remote.base)
    if remote.provision is not None:
        cache.check(remote.provision, skip=frozenset())
    cache.check(remote.baseline, base=base)
    cache.lay(remote.candidate, bundle, work / "candidate", as_layer=layers)
    bundle.unlink()
    request = remote.request

    def side(given: SideRef, folder: Path) -> SideRef:
        return given.model_copy(update={"built": str(folder), "base": None if base is None else str(base)})

    provision = remote.provision
    return request.model_copy(
        update={
            "baseline": side(request.baseline, cache.folder(remote.baseline)),
            "candidate": side(request.candidate, work / "candidate"),
            "incumbent_built": str(cache.folder(remote.incumbent)),
            "provision": None
            if provision is None
            else ProvisionRef(path=str(cache.folder(provision)), sha256=provision.sha256),
            "work_folder": str(work / "work"),
        }
    )


def _refuse_missing(remote: RemoteRequest) -> None:
    """Refuse a plan whose interpreter or folders this machine lacks: no fault of either side."""
    runtime = remote.request.run_spec.runtime
    missing = [path for path in (runtime.python, *runtime.readable) if not Path(path).exists()]
    if missing:
        raise MeasurementBroke("runtime-missing", f"this worker has no {', '.join(missing)}")
