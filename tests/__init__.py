"""Tests of what a user relies on; a test's name says what would be broken if it failed."""

import os

# As the command line and the eval suite do, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
