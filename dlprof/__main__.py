"""The command ``dlprof``, and ``python -m dlprof``."""

import sys


def main() -> None:
    """Run the command line. An interrupt while it is imported is one like any other."""
    try:
        from dlprof.cli import main as command_line
    except KeyboardInterrupt:
        print("dlprof: interrupted", file=sys.stderr)  # noqa: T201 - the message to the user
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
