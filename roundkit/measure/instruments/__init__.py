"""The instruments: what they wrap, how a count is read and checked, and whether this machine has them.

``perf stat`` attaches from outside the boundary, to the waiting command and whatever it will start: no
candidate reaches the kernel's counter. Valgrind is the command that runs inside, so it shares an address
space with the candidate; see :mod:`roundkit.measure.instruments.valgrind` for what is checked and what is
left. Either way address-space layout is fixed, and the count is of the whole process from its start:
interpreter and imports included.
"""

from roundkit.measure.instruments.counting import Counting, counting
from roundkit.measure.instruments.probe import InstrumentState, instrument_state, instrument_states
from roundkit.measure.instruments.reading import CountProblem
from roundkit.measure.instruments.wrap import COUNT, counted_command

__all__ = [
    "COUNT",
    "CountProblem",
    "Counting",
    "InstrumentState",
    "counted_command",
    "counting",
    "instrument_state",
    "instrument_states",
]
