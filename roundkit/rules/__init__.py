"""Floor 3: pure decisions over models; no input, no output, no clock."""
