"""Two checkouts compared outside a round, and a benchmark's noise, by the machinery of a round."""
