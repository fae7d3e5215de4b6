"""Floor 5: pilots, which compare ways of working; they may use everything that rounds use."""
