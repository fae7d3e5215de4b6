"""Floor 5: pilots: frozen matrices of trials, run through one gateway and kept whole."""
