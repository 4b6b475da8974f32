"""The command ``dlprof``, and ``python -m dlprof``."""

from dlprof.cli import main

if __name__ == "__main__":
    main()
