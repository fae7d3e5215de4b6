"""Floor 6: what the control notebooks show, and what their buttons do."""

from roundkit.widgets.closing import (
    close_round,
    decision_sentence,
    decision_table,
    evidence_facts,
    measure_waiting,
)
from roundkit.widgets.control import ControlRoom, control_room
from roundkit.widgets.launching import drive_lanes, lane_table, launch_lanes, launch_sentence, ticket_table
from roundkit.widgets.preparing import (
    advice_table,
    digest_to_post,
    draft_round,
    forecast_table,
    freeze_round,
    is_prepared,
    look_at_round,
    overlap_table,
    prepare_sentence,
    refusal_table,
    scope_tree,
)
from roundkit.widgets.progress import NotebookProgress, notebook_progress
from roundkit.widgets.reviewing import ReviewDesk, packet_table, review_desk
from roundkit.widgets.room_views import state_sentence

__all__ = [
    "ControlRoom",
    "NotebookProgress",
    "ReviewDesk",
    "advice_table",
    "close_round",
    "control_room",
    "decision_sentence",
    "decision_table",
    "digest_to_post",
    "draft_round",
    "drive_lanes",
    "evidence_facts",
    "forecast_table",
    "freeze_round",
    "is_prepared",
    "lane_table",
    "launch_lanes",
    "launch_sentence",
    "look_at_round",
    "measure_waiting",
    "notebook_progress",
    "overlap_table",
    "packet_table",
    "prepare_sentence",
    "refusal_table",
    "review_desk",
    "scope_tree",
    "state_sentence",
    "ticket_table",
]
