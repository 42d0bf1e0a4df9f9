"""Other projects: the hard budget inside inference servers, and bulk work on a cluster."""
