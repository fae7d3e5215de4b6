"""Floor 4: recomputation of a closed round from its evidence alone; imports nothing that talks to a store."""

from roundkit.audit.findings import AuditReport, Check
from roundkit.audit.run import audit_round
from roundkit.audit.table import as_table, render

__all__ = ["AuditReport", "Check", "as_table", "audit_round", "render"]
