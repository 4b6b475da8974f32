"""``python -m dlprof``."""

from dlprof.cli import main

main()
