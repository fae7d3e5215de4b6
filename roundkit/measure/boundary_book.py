"""The boundaries that held in an experiment, each kept once: trials that are alike share one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from roundkit.core.canonical import digest_json
from roundkit.host.confine import Boundary, Execution
from roundkit.models.trial import ConfinedRun

_NUMBER = re.compile(r"(?<=[a-z]-)\d+(?=/|$)")


class BoundaryBook:
    """Collects boundaries under their digests.

    Args:
        places: Folders of the coordinator by the name that stands for each in what is kept, since where
            they lie says nothing about the boundary; an inner folder before the one that holds it.
    """

    def __init__(self, places: Mapping[str, Path]) -> None:
        self._places = {name: str(path) for name, path in places.items()}
        self.boundaries: dict[str, Boundary] = {}

    def enter(self, execution: Execution) -> ConfinedRun:
        """Keep an execution's boundary and return the run that refers to it."""
        boundary = self._without_numbers(execution.boundary)
        digest = digest_json(boundary.model_dump(mode="json"))
        self.boundaries[digest] = boundary
        return ConfinedRun(**execution.model_dump(exclude={"boundary"}), boundary=digest)

    def _without_numbers(self, boundary: Boundary) -> Boundary:
        mounts = tuple(
            mount.model_copy(update={"source": self._plain(mount.source)}) for mount in boundary.mounts
        )
        return boundary.model_copy(update={"mounts": mounts})

    def _plain(self, source: str | None) -> str | None:
        for name, place in self._places.items():
            if source is not None and (source == place or source.startswith(f"{place}/")):
                return f"{{{name}}}" + _NUMBER.sub("N", source.removeprefix(place))
        return source
