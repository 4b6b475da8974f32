"""The command ``dlprof``, and ``python -m dlprof``."""

import gc

COLLECT_AFTER = 1_000_000
"""New objects before the garbage collector runs: imports and sessions have no cycles."""


def main() -> None:
    gc.set_threshold(COLLECT_AFTER)
    from dlprof import cli

    cli.main()


if __name__ == "__main__":
    main()
