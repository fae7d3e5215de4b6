"""An export of a campaign that just ran, audited as a stranger would."""

from __future__ import annotations

from pathlib import Path

from roundkit.audit import audit_evidence
from roundkit.waves.export import export_campaign
from roundkit.waves.folder import CampaignFolder


def assert_audits(campaign: CampaignFolder, scratch: Path) -> None:
    """Export a campaign and check that its evidence agrees with itself."""
    export_campaign(campaign, scratch / "exported")
    failures = audit_evidence(scratch / "exported").failures
    assert failures == (), failures
