"""The policy pilot: rounds of several lanes against the same lanes one a round."""
