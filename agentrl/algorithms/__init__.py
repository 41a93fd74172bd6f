"""One file per algorithm: its formula, its paper, its published defaults. The file's name is the name in a config."""
