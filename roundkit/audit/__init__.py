"""Floor 4: recomputation of a round, a pilot or waves from their evidence alone; never talks to a store."""

from roundkit.audit.any_kind import audit_evidence
from roundkit.audit.findings import AuditReport, Check
from roundkit.audit.pilot_material import PilotMaterial, findings_of, read_pilot
from roundkit.audit.pilot_run import audit_pilot
from roundkit.audit.pilot_source import PilotSource, open_pilot
from roundkit.audit.published_material import read_published
from roundkit.audit.run import audit_round
from roundkit.audit.table import as_table, render
from roundkit.audit.wave_run import audit_waves

__all__ = [
    "AuditReport",
    "Check",
    "PilotMaterial",
    "PilotSource",
    "as_table",
    "audit_evidence",
    "audit_pilot",
    "audit_round",
    "audit_waves",
    "findings_of",
    "open_pilot",
    "read_pilot",
    "read_published",
    "render",
]
