"""Floor 3: the evidence format ``roundkit-evidence/1``, written by one function and read by one class.

An evidence folder holds ``index.json`` (every file with size and SHA-256; its own SHA-256 is the evidence
digest) and ``index.json.sha256`` (that digest, in the form that ``sha256sum -c`` reads); the frozen plan,
the ledger, the run specification, the revealed secret and the events; one file an experiment; and the
bytes of every submitted file under their digest.
"""

from roundkit.evidence.events import Event
from roundkit.evidence.problem import EvidenceProblem
from roundkit.evidence.reader import RoundEvidence, find_evidence, open_evidence
from roundkit.evidence.writer import export_round

__all__ = ["Event", "EvidenceProblem", "RoundEvidence", "export_round", "find_evidence", "open_evidence"]
