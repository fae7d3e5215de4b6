"""Floor 3: drivers that fill lanes, and what they leave."""
