"""The hard budget inside inference servers of other projects."""
