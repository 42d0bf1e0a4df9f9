"""Labels of the parts of a note on a short text, by which commands count texts; they need no rules to be loaded."""

LEFT_OUT = "left out"
NEW = "not in the source"
CHECK = "check"  # words that may not belong together
NOT_ENGLISH = "the text may not be English"
