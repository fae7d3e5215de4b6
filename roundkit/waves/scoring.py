"""Several attempts at one target: the scorer ranks them; where it fails, the first one stands."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from roundkit.models.wave_calls import PrefilterRequest, ScoreAnswer
from roundkit.models.wave_plan import WaveCommand
from roundkit.models.wave_records import Draft, Target
from roundkit.rules.wave_pick import best
from roundkit.waves.calls import DRAFTS, Calls
from roundkit.waves.draft_calls import ask_about_drafts
from roundkit.waves.run_folder import RunFolder

Contest = tuple[Target, Sequence[Draft]]
"""A target and its attempts, in their order."""


def pick_best(calls: Calls, run: RunFolder, contests: Sequence[Contest]) -> list[Draft]:
    """Return the best attempt at each target, in the order given.

    Args:
        calls: Makes the calls.
        run: The run.
        contests: Targets with several attempts.

    Raises:
        CallBroke: a call ended through no doing of its command.
        ConfinementUnavailable: the host cannot confine a command.
        OSError: something cannot be written.
    """
    rules = calls.campaign.plan.plan.gate
    if rules.score is None:
        return [best(attempts, None) for _, attempts in contests]
    with ThreadPoolExecutor(rules.jobs, thread_name_prefix="wave-score") as pool:
        waiting = [pool.submit(_scored, calls, run, rules.score, contest) for contest in contests]
        try:
            return [each.result() for each in waiting]
        except BaseException:
            calls.end_all()
            pool.shutdown(cancel_futures=True)
            raise


def _scored(calls: Calls, run: RunFolder, command: WaveCommand, contest: Contest) -> Draft:
    target, attempts = contest
    request = PrefilterRequest(tag=run.run.tag, drafts=tuple(attempts), targets=(target,), folder=str(DRAFTS))
    called = ask_about_drafts(
        calls, run, "score", command, request, ScoreAnswer, folder=f"score-{target.name}"
    )
    return best(attempts, None if called.answer is None else called.answer.scores)
