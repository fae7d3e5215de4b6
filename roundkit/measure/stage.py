"""The work folder of one experiment: prepared once, with both sides copied anew for each pair."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from roundkit.core.globs import GlobSet
from roundkit.measure.boundary import CHECKOUT, TrialFiles, provision_mounts
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.materialized import Checkout, checkout_of
from roundkit.measure.protect import Protection, copy_matching, plan_protection
from roundkit.measure.trees import remove_tree
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.trial import Side

_DIGITS = 12


@dataclass(frozen=True)
class Stage:
    """What is the same for all trials of an experiment.

    Attributes:
        work: The work folder, seen by the coordinator alone; trials see parts of it.
        protection: How protected files come over a side's copy.
    """

    work: Path
    protection: Protection

    @classmethod
    def prepare(cls, request: MeasurementRequest) -> Self:
        """Make the work folder with what driver and validator see.

        Raises:
            MeasurementBroke: ``checkout-kinds``: one side is a layer over a base and the other one is not.
            OSError: something cannot be read or written.
        """
        work = Path(request.work_folder)
        remove_tree(work)  # a predecessor that was killed left it behind
        work.mkdir(parents=True)
        # Passable, not readable: a confined command reaches what it is given as a user of its own.
        work.chmod(0o711)
        incumbent = Path(request.incumbent_built).resolve()
        base = _common_base(request)
        protected, hidden = request.run_spec.protected_paths, request.run_spec.hidden_paths
        stage = cls(
            work.resolve(), plan_protection(incumbent, GlobSet(protected), GlobSet(hidden), base=base)
        )
        copy_matching(incumbent, stage._driver_checkout, GlobSet(protected), omit=GlobSet(hidden))
        copy_matching(incumbent, stage._validator_checkout, GlobSet((*protected, *hidden)))
        return stage

    @contextmanager
    def fresh_copies(
        self, request: MeasurementRequest, *, first: Side = "baseline"
    ) -> Iterator[dict[Side, TrialFiles]]:
        """Materialize both sides anew: what differs between two copies is noise, and no side's.

        Args:
            request: What is measured.
            first: The side that runs first, and is copied first: the copy that was made last is still warm in
                the caches, which must not be one side's in both orders.

        Raises:
            OSError: something cannot be read or written.
        """
        built: dict[Side, Checkout] = {
            "baseline": checkout_of(request.baseline),
            "candidate": checkout_of(request.candidate),
        }
        order = sorted(built, key=lambda side: side != first)
        folders: dict[Side, Path] = {side: self._new_folder() for side in order}
        sides: dict[Side, TrialFiles] = {}
        try:
            for side, target in folders.items():
                sides[side] = TrialFiles(
                    checkout=self.protection.copy_side(built[side], target),
                    protected=self.protection.mounts(CHECKOUT),
                    driver_checkout=self._driver_checkout,
                    validator_checkout=self._validator_checkout,
                    provision=provision_mounts(request.provision),
                )
            yield sides
        finally:
            for target in folders.values():
                remove_tree(target)

    def new_trial_folder(self) -> Path:
        """Return where the private folders of one more trial go; it does not exist yet."""
        return self._new_folder()

    def _new_folder(self) -> Path:
        """Return a folder whose name, always of one length, tells neither side nor place in the schedule.

        A command can read where its mounts come from.
        """
        return self.work / f"files-{secrets.randbelow(10**_DIGITS):0{_DIGITS}d}"

    @property
    def _driver_checkout(self) -> Path:
        return self.work / "for-driver"

    @property
    def _validator_checkout(self) -> Path:
        return self.work / "for-validator"


def _common_base(request: MeasurementRequest) -> Path | None:
    """Return the base of both sides; reading an overlay costs time, so both must be of one kind."""
    if request.baseline.base != request.candidate.base:
        raise MeasurementBroke("checkout-kinds", "the two sides were laid on the disk in different ways")
    return None if request.baseline.base is None else Path(request.baseline.base)
