"""Floor 3: running trials and experiments on leased devices. Measures and records; decides nothing."""
