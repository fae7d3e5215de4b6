"""Floor 1: what the machine gives: confinement, devices, leases, probes."""
