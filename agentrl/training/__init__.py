"""Learning: the loop, the update, supervised warm-up, checkpoints."""
