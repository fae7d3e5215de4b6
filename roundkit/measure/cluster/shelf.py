"""The coordinator's side of moving trees: each checkout of a request as a bundle."""

from __future__ import annotations

import secrets
import tempfile
import threading
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import now_utc
from roundkit.core.files import tree_digest
from roundkit.measure.cluster.bundles import bundle_digest, write_bundle
from roundkit.measure.cluster.spool import run_identity
from roundkit.measure.materialized import Checkout, checkout_of
from roundkit.models.cluster import RemoteRequest, TreeRef
from roundkit.models.measurement import MeasurementRequest, ProvisionRef, SideRef
from roundkit.models.round_plan import DeviceSet

_AWAY = "sent"
"""What stands in a travelling request where a place on the coordinator's disk stood."""


class Shelf:
    """Bundles of the trees that this coordinator sends, in a folder that ends with it.

    Incumbents stay for as long as the coordinator; a candidate's bundle for as long as its experiment. The
    folder is made for the first of them: by then, whoever measures has removed what a killed one left.

    Args:
        root: Where that folder is made, as ``tmp…``.
        store_sha256: Which store asks.

    Attributes:
        name: Tells this coordinator from every other one that sends the same trees to a worker.
    """

    def __init__(self, root: Path, store_sha256: str) -> None:
        self.name = secrets.token_hex(8)
        self._store_sha256 = store_sha256
        self._root = root
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        # Held while a bundle is written, which asks for the folder.
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, str | None], TreeRef] = {}

    def close(self) -> None:
        """Remove every bundle."""
        if self._scratch is not None:
            self._scratch.cleanup()

    def pack(
        self, request: MeasurementRequest, device_set: DeviceSet, deadline_utc: datetime
    ) -> tuple[RemoteRequest, bytes]:
        """Return a request as it travels, and the bundle of its candidate.

        Args:
            request: The experiment, with places on this machine.
            device_set: What it is to be measured on.
            deadline_utc: When a worker that has not answered counts as lost.

        Raises:
            MeasurementBroke: ``tree-unportable``, ``tree-hollow``.
            OSError: a tree cannot be read, or its bundle not be written.
        """
        plan_digest = request.run_spec.round_digest
        incumbent_folder = Path(request.incumbent_built)
        incumbent = self._keep(Checkout(incumbent_folder), None, None)
        base = None
        if request.baseline.base is not None:
            base = self._keep(Checkout(Path(request.baseline.base)), None, None)
        below = base or incumbent
        baseline = self._keep(
            checkout_of(request.baseline), below, incumbent_folder, sha256=request.baseline.built_sha256
        )
        provision = None
        if request.provision is not None:
            folder = Checkout(Path(request.provision.path))
            provision = self._keep(folder, None, None, sha256=request.provision.sha256)
        over, over_folder = (below, None) if base is not None else (baseline, Path(request.baseline.built))
        most_hollow_bytes = request.run_spec.limits.disk_bytes
        candidate, bundle = self._candidate(request.candidate, over, over_folder, most_hollow_bytes)
        remote = RemoteRequest(
            format="roundkit-cluster-request/1",
            run=run_identity(self._store_sha256, plan_digest, request.experiment_id),
            store_sha256=self._store_sha256,
            plan_digest=plan_digest,
            device_class=device_set.device_class,
            sent_utc=now_utc(),
            clock_offset_s=0.0,
            deadline_utc=deadline_utc,
            request=_without_places(request, device_set),
            incumbent=incumbent,
            base=base,
            baseline=baseline,
            candidate=candidate,
            provision=provision,
        )
        return remote, bundle

    def bundle(self, digest: str) -> Path:
        """Return where the bundle of a kept tree lies."""
        return self._folder / f"{digest}.tar"

    @property
    def _folder(self) -> Path:
        with self._lock:
            if self._scratch is None:
                # Ends with this object, or with the process.
                self._scratch = tempfile.TemporaryDirectory(prefix="tmp-bundles-", dir=self._root)
            return Path(self._scratch.name)

    def _keep(
        self, checkout: Checkout, over: TreeRef | None, over_folder: Path | None, *, sha256: str | None = None
    ) -> TreeRef:
        with self._lock:
            key = str(checkout.folder), sha256
            known = self._kept.get(key)
            if known is None:
                written, known = self._write(checkout, over, over_folder, sha256=sha256)
                written.rename(self.bundle(known.bundle_sha256))
                self._kept[key] = known
            return known

    def _write(
        self,
        checkout: Checkout,
        over: TreeRef | None,
        over_folder: Path | None,
        *,
        sha256: str | None,
        most_hollow_bytes: int | None = None,
    ) -> tuple[Path, TreeRef]:
        """Write a bundle to a file of this thread, and return that file and the tree."""
        written = self._folder / f"{threading.get_ident()}.making"
        write_bundle(checkout, written, over=over_folder, most_hollow_bytes=most_hollow_bytes)
        tree = TreeRef(
            sha256=sha256 or tree_digest(checkout.folder),
            bundle_sha256=bundle_digest(written),
            bundle_bytes=written.stat().st_size,
            over=None if over is None else over.bundle_sha256,
        )
        return written, tree

    def _candidate(
        self, side: SideRef, over: TreeRef, over_folder: Path | None, most_hollow_bytes: int | None
    ) -> tuple[TreeRef, bytes]:
        written, tree = self._write(
            checkout_of(side), over, over_folder,
            sha256=side.built_sha256, most_hollow_bytes=most_hollow_bytes,
        )  # fmt: skip
        data = written.read_bytes()
        written.unlink()
        return tree, data


def _without_places(request: MeasurementRequest, device_set: DeviceSet) -> MeasurementRequest:
    """Return a request that says nothing of where things lie on this machine."""

    def away(side: SideRef) -> SideRef:
        return side.model_copy(update={"built": _AWAY, "base": None})

    provision = request.provision
    return request.model_copy(
        update={
            "baseline": away(request.baseline),
            "candidate": away(request.candidate),
            "incumbent_built": _AWAY,
            "provision": None if provision is None else ProvisionRef(path=_AWAY, sha256=provision.sha256),
            "device_sets": (device_set,),
            "work_folder": _AWAY,
        }
    )
