"""The command ``dlprof``, and ``python -m dlprof``."""

import gc


def main() -> None:
    gc.set_threshold(1_000_000)  # imports and sessions have no cycles
    from dlprof import cli

    cli.main()


if __name__ == "__main__":
    main()
