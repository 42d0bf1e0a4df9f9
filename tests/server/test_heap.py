"""Memory of a server goes back to the system."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, re
import numpy as np
from lengthwise.server.heap import return_freed_memory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

if {returns}:
    assert return_freed_memory()
np.ones(30 << 20, np.uint8)  # freed at once: glibc keeps blocks up to this size from now on
before = resident()
blocks = [np.ones((2 + n % 7) << 20, np.uint8) for n in range(60)]
last = np.ones(8 << 20, np.uint8)
del blocks
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
@pytest.mark.parametrize("returns", [False, True])
def test_freed_blocks_are_returned(returns):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(returns=returns)], capture_output=True, text=True)
    kept = float(done.stdout)
    assert kept < 30 if returns else kept > 200, done.stderr
