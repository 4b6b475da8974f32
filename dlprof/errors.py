"""Everything dlprof can say no with; caught only in the command line's entry.

``str(error)`` is one sentence for the user. Exit codes are a contract (docs/exit-codes.md):
0 done, 1 a regression, a finding or an expectation, 2 usage or unreadable input, 3 unsure,
4 nothing measured, 130 interrupted.
"""

from __future__ import annotations


class DlprofError(Exception):
    """Base of all errors."""

    exit_code = 2


class UsageError(DlprofError):
    """The command line or an input file makes no sense."""


class SessionError(UsageError):
    """A session file is truncated, foreign, or from a newer major version."""


class NoReproducer(UsageError):
    """No script can be made of a finding; the message says what is missing."""


class ScenarioError(UsageError):
    """A scenario file cannot be read, or makes no sense."""


class BadInterpreter(UsageError):
    """The interpreter to be measured is no Python, is too old, or cannot be started."""


class Unsaved(UsageError):
    """The session could not be written where it should be; the message says where it is."""


class Unmeasured(DlprofError):
    """Nothing could be measured."""

    exit_code = 4


class MissingFramework(Unmeasured):
    """A framework is not installed in the measured interpreter."""


class MissingDevice(Unmeasured):
    """The device that was asked for, or that a framework needs, is not there."""


class Regression(DlprofError):
    """HEAD is slower than BASE, or worse."""

    exit_code = 1


class FindingsFailed(DlprofError):
    """What was found is not what ``--fail-on``, a scenario or the selftest allows."""

    exit_code = 1


class Unsure(DlprofError):
    """The gate cannot tell, or nothing looked for what ``--fail-on`` or a scenario names."""

    exit_code = 3


class Interrupted(DlprofError):
    """Stopped by the user; what was measured is kept."""

    exit_code = 130
