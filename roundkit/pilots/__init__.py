"""Floor 5: pilots, which run rounds or trials by a frozen design and keep everything."""
