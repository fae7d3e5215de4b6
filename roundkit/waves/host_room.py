"""Whether this machine lets a drafter start as many agents as its plan wants."""

from __future__ import annotations

import os
import resource

from roundkit.core.errors import refuse
from roundkit.host.confine.slots import SLOTS
from roundkit.models.wave_plan import WaveDraft

_DESCRIPTORS_EACH = 32
"""What a running agent takes of the drafter's: pipes, places, its boundary's handles and its proxy."""
_DESCRIPTORS_ELSE = 256


def make_room(plan: WaveDraft) -> None:
    """Take as many descriptors as this process may have, and check that they are enough.

    Raises:
        Refused: ``too-many-workers``: root has no user id for each; ``too-few-descriptors``.
    """
    wanted = plan.workers.most + plan.gate.jobs
    if os.geteuid() == 0 and wanted > SLOTS:
        raise refuse(
            "too-many-workers",
            f"{plan.workers.most} draft agents and {plan.gate.jobs} gate jobs are more than the {SLOTS} user"
            " ids that root has for confined work",
            place="workers.most",
            remedy="take fewer, or run as an ordinary user",
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _DESCRIPTORS_EACH * plan.workers.most + _DESCRIPTORS_ELSE
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise refuse(
            "too-few-descriptors",
            f"{plan.workers.most} draft agents take {needed} descriptors, and this process may have {hard}",
            place="workers.most",
            remedy=f"take fewer, or raise the limit for this command: ulimit -Hn {needed}",
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
