"""Speed and memory beside other programs, in one run: what `lengthwise bench` measures."""
