"""Floor 1, pure (no I/O, no clock): estimator, verdict arithmetic, boundaries, drift, ratios, simulation."""
