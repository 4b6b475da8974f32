"""The errors of dlprof, which the entry of the command line catches.

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


class Unsaved(UsageError):
    """The session could not be written where it should be; the message says where it is."""


class Unmeasured(DlprofError):
    """Nothing could be measured."""

    exit_code = 4


class MissingFramework(Unmeasured):
    """A framework is not installed in the measured interpreter."""


class Regression(DlprofError):
    """HEAD is slower than BASE, or worse."""

    exit_code = 1


class FindingsFailed(DlprofError):
    """``--fail-on``, a scenario or the selftest does not allow the findings."""

    exit_code = 1


class Unsure(DlprofError):
    """A gate cannot decide, or a verdict that ``--fail-on`` or a scenario names is not known."""

    exit_code = 3


class Interrupted(DlprofError):
    """Stopped by the user; what was measured is kept."""

    exit_code = 130
