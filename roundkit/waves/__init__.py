"""Floor 5: unattended waves. A drafter and a gater, two processes with one folder between them."""
