"""Measures whether answers can be trusted; see `python -m eval --help`."""

import os

# Set before numpy is first imported, which reads it then: the matrices here are small, and threads that wait for one another double the
# processor time of a run (60 questions and 60 claims on two cores: 52 s of it with two threads, 27 s with one).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
