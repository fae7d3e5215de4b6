"""Floor 2: the frozen pydantic models of every plan, record and evidence file; nothing else."""
