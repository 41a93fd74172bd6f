"""Who says what episodes are worth: the environment, a reward model, or a function; one file each."""
