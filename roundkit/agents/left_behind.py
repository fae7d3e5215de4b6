"""Background work that an agent leaves at its end: it dies with the agent, and the record says so."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from roundkit.core.text import visible
from roundkit.host.confine import Execution

_SHOWN = 5

# Everything in the boundary but its process 1 and this shell is the agent's; what just ends gets a moment.
# A signal that ended the agent ends the shell as well, so that the record says what happened. Codes above 192
# are no signal's, and those of the signals that stop a process (19 to 22) are an agent's own.
_SCRIPT = """\
unset PWD OLDPWD SHLVL
_rk_mark=$1; shift
_rk_look() {
_rk_left=
for _rk_entry in /proc/[0-9]*; do
case ${_rk_entry#/proc/} in 1|$$) continue;; esac
{ read -r _rk_line <"$_rk_entry/stat"; } 2>/dev/null || continue
case ${_rk_line##*) } in Z*|X*) continue;; esac
_rk_line=${_rk_line#*(}; _rk_left="$_rk_left/${_rk_line%)*}"
done
}
"$@"; _rk_code=$?
_rk_look
[ -z "$_rk_left" ] || { /bin/sleep 0.2; _rk_look; }
[ -z "$_rk_left" ] || printf '\\n%s%s\\n' "$_rk_mark" "$_rk_left" >&2
case $_rk_code in
147|148|149|150) ;;
129|1[3-8]?|19[0-2]) kill -$((_rk_code - 128)) $$;;
esac
exit $_rk_code
"""


@dataclass(frozen=True)
class LastLook:
    """Runs an agent, and looks around in its boundary once it has ended by itself.

    Attributes:
        mark: What its line on standard error begins with; no agent knows it before.
    """

    mark: str = field(default_factory=lambda: f"roundkit-{secrets.token_hex(8)}")

    def around(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` and then looks."""
        return ["/bin/sh", "-c", _SCRIPT, "agent", self.mark, *argv]

    def told(self, execution: Execution) -> tuple[Execution, str]:
        """Return a run without the line, and what it said in words; empty where nothing was left."""
        before, mark, after = execution.stderr_tail.rpartition(f"\n{self.mark}")
        if not mark:
            return execution, ""
        names, _, rest = after.partition("\n")
        found = [visible(name)[:20] for name in names.split("/")[1:]]
        shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
        words = f"lost: {len(found)} still at work when the agent ended ({shown})"
        return execution.model_copy(update={"stderr_tail": before + rest}), words
