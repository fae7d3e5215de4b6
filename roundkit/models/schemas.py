"""JSON Schemas of the files that people write or read, with what the models' docstrings say of each field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from roundkit.core.docstrings import about_attributes, about_class, plain_markup
from roundkit.models import (
    campaign,
    cluster,
    comparison,
    evidence,
    experiment,
    lane,
    lane_command,
    ledger,
    pilot_draft,
    pilot_findings,
    pilot_plan,
    pilot_published,
    pilot_review,
    pilot_trial,
    policy_plan,
    policy_run,
    policy_simulation,
    round_plan,
    run_spec,
    wave_calls,
    wave_gate,
    wave_plan,
    wave_records,
    wave_traffic,
)
from roundkit.models.base import Record
from roundkit.models.field_words import FIELD_WORDS
from roundkit.models.schema_fields import references

Writer = Literal["you", "your command", "roundkit"]
DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Document:
    """One kind of file that roundkit reads or writes.

    Attributes:
        name: What ``roundkit schema`` calls it.
        model: What it is read as.
        file: Its name, or where it stands.
        noun: What it belongs to: its page in the reference.
        writer: Who writes it.
    """

    name: str
    model: type[Record]
    file: str
    noun: str
    writer: Writer = "roundkit"

    @property
    def about(self) -> str:
        """Return what it is, in Markdown."""
        return plain_markup(about_class(self.model))


DOCUMENTS = (
    Document("campaign", campaign.CampaignPlan, "campaign.yaml", "campaign", "you"),
    Document("round", round_plan.RoundDraft, "round.yaml", "round", "you"),
    Document("command-template", lane_command.CommandTemplate, "agent.command in round.yaml", "round", "you"),
    Document("round-plan", round_plan.RoundPlan, "round-plan.json", "round"),
    Document("launch", lane.LaunchManifest, "launch.json", "round"),
    Document("lane", lane.LaneFile, ".roundkit/lane.json", "round"),
    Document("ticket-status", lane.TicketStatus, ".roundkit/status/TICKET.json", "round"),
    Document("manifest", lane.Manifest, "in a lane's outbox", "round"),
    Document("round-ledger", ledger.RoundLedger, "round-ledger.json", "evidence"),
    Document("experiment", experiment.ExperimentRecord, "experiments/EXPERIMENT.json", "evidence"),
    Document("run-spec", run_spec.RunSpec, "run-spec.json", "evidence"),
    Document("evidence", evidence.EvidenceIndex, "index.json", "evidence"),
    Document("secret", evidence.SecretReveal, "secret.json", "evidence"),
    Document("evidence-pointer", evidence.EvidencePointer, "in a pruned round directory", "evidence"),
    Document("comparison", comparison.Comparison, "of measure --json", "comparison"),
    Document("noise", comparison.NoiseReport, "of noise --json", "comparison"),
    Document("pilot", pilot_draft.PairedDraft, "pilot.yaml, kind: paired", "pilot", "you"),
    Document("pilot-findings", pilot_findings.FindingsFile, "findings.yaml", "pilot", "you"),
    Document("pilot-published", pilot_published.PublishedCohort, "published.json", "pilot", "you"),
    Document("pilot-plan", pilot_plan.PairedPlan, "plan.json", "pilot"),
    Document("pilot-start", pilot_trial.TrialStart, "start.json", "pilot"),
    Document("pilot-call", pilot_trial.GatewayCall, "a line of calls.jsonl", "pilot"),
    Document("pilot-wire", pilot_trial.WireLine, "a line of wire.jsonl", "pilot"),
    Document("pilot-drift", pilot_trial.DriftReceipt, "drift.json", "pilot"),
    Document("pilot-presentation", pilot_trial.Presentation, "presentation.json", "pilot"),
    Document("pilot-trial", pilot_trial.TrialRecord, "record.json", "pilot"),
    Document("pilot-replay", pilot_trial.ReplayRecord, "replays/TUPLE-SHA256.json", "pilot"),
    Document("pilot-intervention", pilot_review.Intervention, "a line of interventions.jsonl", "pilot"),
    Document("review-packet", pilot_review.ReviewPacket, "review/packet.json", "pilot"),
    Document("review-session", pilot_review.ReviewSession, "review/session.json", "pilot"),
    Document("review-mark", pilot_review.ReviewMark, "a line of review/marks.jsonl", "pilot"),
    Document("review", pilot_review.Review, "review/review.json", "pilot"),
    Document("policy-pilot", policy_plan.PolicyDraft, "pilot.yaml, kind: policy", "policy-pilot", "you"),
    Document("policy-plan", policy_plan.PolicyPlan, "plan.json", "policy-pilot"),
    Document("policy-start", policy_run.PolicyStart, "start.json", "policy-pilot"),
    Document("policy-launch", policy_run.PolicyLaunch, "launch.json of a run", "policy-pilot"),
    Document("policy-end", policy_run.PolicyEnd, "end.json", "policy-pilot"),
    Document("policy-run", policy_run.PolicyRunRecord, "record.json", "policy-pilot"),
    Document("policy-decision", policy_run.PolicyDecision, "decision.json", "policy-pilot"),
    Document("policy-simulation", policy_simulation.PolicySimulation, "of pilot simulate", "policy-pilot"),
    Document("wave-plan", wave_plan.WaveDraft, "wave-plan.yaml", "wave", "you"),
    Document("draw-request", wave_calls.DrawRequest, "what draw reads", "wave-commands"),
    Document("draw-answer", wave_calls.DrawAnswer, "what draw writes", "wave-commands", "your command"),
    Document("shard-task", wave_records.ShardTask, "what a draft agent reads", "wave-commands"),
    Document(
        "request-event", wave_traffic.RequestEvent, "a line of its events", "wave-commands", "your command"
    ),
    Document("prefilter-request", wave_calls.PrefilterRequest, "what prefilter, score read", "wave-commands"),
    Document(
        "prefilter-answer",
        wave_calls.PrefilterAnswer,
        "what prefilter writes",
        "wave-commands",
        "your command",
    ),
    Document("score-answer", wave_calls.ScoreAnswer, "what score writes", "wave-commands", "your command"),
    Document("gate-request", wave_calls.GateRequest, "what a gate reads", "wave-commands"),
    Document("gate-answer", wave_calls.GateAnswer, "what a gate writes", "wave-commands", "your command"),
    Document("harvest-request", wave_calls.HarvestRequest, "what harvest reads", "wave-commands"),
    Document(
        "harvest-answer", wave_calls.HarvestAnswer, "what harvest writes", "wave-commands", "your command"
    ),
    Document("credit-request", wave_calls.CreditRequest, "what credit reads", "wave-commands"),
    Document("credit-answer", wave_calls.CreditAnswer, "what credit writes", "wave-commands", "your command"),
    Document("frozen-wave-plan", wave_plan.WavePlan, "wave-plan.json", "wave"),
    Document("wave", wave_records.Wave, "wave.json", "wave"),
    Document("wave-dealt", wave_records.Dealt, "dealt.json", "wave"),
    Document("wave-shard", wave_records.Shard, "shard.json", "wave"),
    Document("wave-shard-end", wave_records.ShardEnd, "end.json of a shard", "wave"),
    Document("wave-drafted", wave_records.Drafted, "drafted.json", "wave"),
    Document("wave-decision", wave_traffic.WorkerStep, "decision.json", "wave"),
    Document("drafter", wave_records.DrafterState, "drafter.json", "wave"),
    Document("gate-run", wave_gate.GateRun, "run.json", "wave"),
    Document("gate-owners", wave_gate.OwnersStep, "owners.json", "wave"),
    Document("gate-prefilter", wave_gate.PrefilterStep, "prefilter.json", "wave"),
    Document("gate-pick", wave_gate.PickStep, "pick.json", "wave"),
    Document("gate-groups", wave_gate.GateStep, "gate.json", "wave"),
    Document("gate-commit", wave_gate.CommitStep, "commit.json", "wave"),
    Document("gate-harvest", wave_gate.HarvestStep, "harvest.json", "wave"),
    Document("gate-rejects", wave_gate.RejectRows, "rejects.json", "wave"),
    Document("gate-end", wave_gate.RunEnd, "end.json of a gate's run", "wave"),
    Document("parked-draft", wave_gate.ParkedDraft, "beside a parked draft", "wave"),
    Document("wave-reject", wave_records.Rejected, "a line of rejects.jsonl", "wave"),
    Document("waves-index", evidence.WaveIndex, "waves-index.json of an export", "wave"),
    Document("wave-row", wave_records.LedgerRow, "a line of ledger.jsonl", "wave"),
    Document("device-sets", cluster.WorkerSets, "of worker --device-sets", "cluster", "you"),
    Document("slurm", cluster.SlurmWorkers, "of serve --slurm", "cluster", "you"),
    Document("cluster-request", cluster.RemoteRequest, "what a worker is asked", "cluster"),
    Document("cluster-reply", cluster.RemoteReply, "what a worker answers", "cluster"),
    Document("cluster-worker", cluster.WorkerState, "what a worker says of itself", "cluster"),
    Document("cluster-trial", cluster.TrialNote, "what it says while it measures", "cluster"),
)
"""Every one of them, what people write first within each noun."""


def document_named(name: str) -> Document | None:
    """Return the kind of file of that name, or with that file name where only one has it."""
    for document in DOCUMENTS:
        if document.name == name:
            return document
    found = [document for document in DOCUMENTS if document.file == name] or documents_of_file(name)
    return found[0] if len(found) == 1 else None


def documents_of_file(file_name: str) -> list[Document]:
    """Return every kind of file that has a file name, or is a line of it; several kinds share some names."""
    if "." not in file_name:
        return []
    return [each for each in DOCUMENTS if file_name in each.file.replace(",", "").split()]


def json_schema(document: Document) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one kind of file, described field by field."""
    schema = document.model.model_json_schema(schema_generator=_Described)
    return {"$schema": DIALECT, "title": f"roundkit: {document.file}"} | {
        name: value for name, value in schema.items() if name != "title"
    }


class _Described(GenerateJsonSchema):
    """Takes descriptions from docstrings, where these models have them."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        shown = super().model_schema(schema)
        kind: type[BaseModel] = schema["cls"]
        shown["description"] = plain_markup(about_class(kind))
        said = about_attributes(kind)
        for name, field in kind.model_fields.items():
            for key in {name, field.alias} & shown.get("properties", {}).keys():
                # What holds an object of its own says enough by that object's description.
                general = None if references(shown["properties"][key]) else FIELD_WORDS.get(name)
                if words := said.get(name, general):
                    shown["properties"][key]["description"] = plain_markup(words)
        return shown
