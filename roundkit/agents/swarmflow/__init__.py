"""The SwarmFlow driver: a script with one worker a lane, its lint, and the engine that runs it."""
