"""Floor 4: prepare, launch, intake, serve and close."""
