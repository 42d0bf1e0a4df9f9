"""Localisation: translate or shorten the texts of string and subtitle files, and leave the rest of the file as it is.

A planner reads a file and returns a `Plan`: the texts to ask for, and what to do with the answers. `files.py` runs it.
Models are given from outside, so that nothing here imports torch.
"""
