"""Results written for other tools: one adapter a file."""
