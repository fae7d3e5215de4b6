"""Why ``prepare`` refuses a round: every problem of the owner's two files, decided without any effect."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.core.clock import format_utc, is_expired
from roundkit.core.errors import Refusal
from roundkit.models.base import IDENTIFIER_LENGTH
from roundkit.rules.agent_refusals import agent_refusals
from roundkit.rules.freezing import gates_in_force
from roundkit.rules.identity import experiment_name, ticket_name
from roundkit.rules.lane_refusals import lane_refusals
from roundkit.rules.looks import plan_looks
from roundkit.rules.round_facts import RoundFacts

_MOST_ATTEMPTS = 9999
"""As many experiments as a subject's names leave room for."""


def round_refusals(facts: RoundFacts) -> list[Refusal]:
    """Return every reason for which the round cannot be frozen, in the order of the files' keys."""
    checks = (
        _name_problems,
        _campaign_problems,
        _gate_problems,
        _device_problems,
        _exploration_problems,
        _deadline_problems,
    )
    return [
        *(refusal for check in checks for refusal in check(facts)),
        *lane_refusals(facts),
        *agent_refusals(facts),
    ]


def _name_problems(facts: RoundFacts) -> Iterator[Refusal]:
    """Experiments are named after round, lane, ticket and attempt; the whole name is an identifier."""
    for position, lane in enumerate(facts.draft.lanes):
        longest = experiment_name(ticket_name(facts.draft.round_id, lane.id, "0" * 64), _MOST_ATTEMPTS)
        if len(longest) > IDENTIFIER_LENGTH:
            over = len(longest) - IDENTIFIER_LENGTH
            yield Refusal(
                "name-too-long",
                f"{facts.draft.round_id!r} and {lane.id!r} together make names of {len(longest)} characters",
                facts.round_at("lanes", position, "id"),
                f"shorten the round's id or the lane's by {over} characters",
            )


def _campaign_problems(facts: RoundFacts) -> Iterator[Refusal]:
    seen: set[str] = set()
    for index, entry in enumerate(facts.campaign.search_plan):
        if entry.id in seen:
            yield Refusal(
                "search-entry-twice",
                f"the search plan has the entry {entry.id!r} more than once",
                facts.campaign_at("search_plan", index, "id"),
                "give each entry an id of its own",
            )
        seen.add(entry.id)
    state = facts.campaign.search_state
    if state.next_candidate_parent not in {None, state.incumbent_revision}:
        yield Refusal(
            "incumbent-mismatch",
            f"{state.next_candidate_parent} is not the incumbent {state.incumbent_revision}",
            facts.campaign_at("search_state", "next_candidate_parent"),
            "lanes start from the incumbent: make both the same, or set next_candidate_parent to null",
        )


def _gate_problems(facts: RoundFacts) -> Iterator[Refusal]:
    plan, gates = facts.campaign.test_plan, facts.draft.gates
    rows = (
        ("ab_ba_pairs", gates.ab_ba_pairs, plan.ab_ba_pairs, 1),
        ("min_gain", gates.min_gain, plan.min_gain, 1),
        ("loss_margin", gates.loss_margin, plan.loss_margin, -1),
        ("sigma_min", gates.sigma_min, plan.sigma_min, 1),
    )
    for name, wanted, given, stricter in rows:
        if wanted is not None and (wanted - given) * stricter < 0:
            bound = "at least" if stricter > 0 else "at most"
            yield Refusal(
                "loosened-gate",
                f"{name} {wanted} is looser than the campaign's {given}",
                facts.round_at("gates", name),
                f"a round may only tighten a gate: give {bound} {given}, or leave it out",
            )
    try:
        plan_looks(gates_in_force(plan, gates), "ticket")
    except ValueError:
        yield Refusal(
            "looks-impossible",
            "so little error is spent at a look of early stopping that no boundary can be reckoned",
            facts.campaign_at("test_plan", "early_stopping"),
            "lower sigma_min or spending_exponent, begin with more pairs (first_look), or set it to null",
        )


def _device_problems(facts: RoundFacts) -> Iterator[Refusal]:
    owner: dict[tuple[str | None, str, str], str] = {}
    ids: set[str] = set()
    for index, device_set in enumerate(facts.draft.device_sets):
        if device_set.id in ids:
            yield Refusal(
                "device-set-twice",
                f"two device sets are called {device_set.id!r}",
                facts.round_at("device_sets", index, "id"),
                "give each set an id of its own",
            )
        ids.add(device_set.id)
        for position, device in enumerate(device_set.devices):
            place = facts.round_at("device_sets", index, "devices", position)
            key = (device_set.machine, device_set.platform, device)
            if key in owner:
                yield Refusal(
                    "device-twice",
                    f"device {device!r} of set {device_set.id!r} is in set {owner[key]!r} already",
                    place,
                    "device sets measure side by side, so each device belongs to one set",
                )
            owner.setdefault(key, device_set.id)
            own = device_set.platform == "cpu" and device_set.machine is None
            if own and not _is_core(device, facts.cores):
                yield Refusal(
                    "device-missing",
                    f"this process may not run on a core {device!r}",
                    place,
                    f"this machine offers cores {_core_list(facts.cores)}: name one of them, or the set's "
                    "`machine` where a worker of a cluster has it",
                )
        if facts.draft.composition.same_device_class and device_set.device_class is None:
            yield Refusal(
                "no-device-class",
                f"device set {device_set.id!r} has no class, and composition is to stay within one",
                facts.round_at("device_sets", index, "device_class"),
                "give each set a `device_class`, the same for sets of devices that are alike",
            )


def _exploration_problems(facts: RoundFacts) -> Iterator[Refusal]:
    measured = {device for device_set in facts.draft.device_sets for device in device_set.devices}
    for index, lane in enumerate(facts.draft.lanes):
        for position, device in enumerate(lane.exploration_devices):
            if device in measured:
                yield Refusal(
                    "exploration-device",
                    f"lane {lane.id!r} would explore on {device!r}, which measures",
                    facts.round_at("lanes", index, "exploration_devices", position),
                    "give the lane a device that is in no device set",
                )


def _is_core(device: str, cores: frozenset[int]) -> bool:
    return device.isascii() and device.isdecimal() and str(int(device)) == device and int(device) in cores


def _core_list(cores: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(cores)))


def _deadline_problems(facts: RoundFacts) -> Iterator[Refusal]:
    end = facts.draft.deadline_utc
    if is_expired(end, facts.now):
        yield Refusal(
            "round-deadline",
            f"the round's deadline {format_utc(end)} has passed",
            facts.round_at("deadline_utc"),
            "give a time that is still to come, in UTC",
        )
    for index, lane in enumerate(facts.draft.lanes):
        if lane.deadline_utc is None:
            continue
        place = facts.round_at("lanes", index, "deadline_utc")
        if is_expired(lane.deadline_utc, facts.now):
            yield Refusal(
                "lane-deadline",
                f"the deadline {format_utc(lane.deadline_utc)} of lane {lane.id!r} has passed",
                place,
                "give a time that is still to come, or leave it out to use the round's",
            )
        if lane.deadline_utc > end:
            yield Refusal(
                "lane-deadline",
                f"lane {lane.id!r} would end at {format_utc(lane.deadline_utc)}, after the round",
                place,
                f"give a time not after {format_utc(end)}",
            )
