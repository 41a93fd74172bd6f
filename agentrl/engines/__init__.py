"""Samplers: one file per engine; the file's name is the name in a config."""
