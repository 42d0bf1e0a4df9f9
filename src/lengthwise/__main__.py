"""`python -m lengthwise` is `lengthwise`."""

import sys

from .cli import main

sys.exit(main())
