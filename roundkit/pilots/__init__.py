"""Floor 5: pilots: a frozen design of trials or rounds, run in its order and kept whole."""
