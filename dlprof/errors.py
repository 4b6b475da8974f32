"""Everything dlprof can say no with; caught only in the command line's entry.

    DlprofError                 exit code 2
    ├── UsageError              2  the command line or an input file makes no sense
    │   ├── SessionError        2  a session file cannot be read
    │   ├── HistoryError        2  a history cannot be read, or not be added to
    │   ├── NoReproducer        2  a finding of which no script can be made
    │   ├── ScenarioError       2  a scenario file makes no sense
    │   ├── BadInterpreter      2  what is to be measured is no Python, or one that is too old
    │   └── Unsaved             2  measured, but the session could not be written where it was to be
    ├── Unmeasured              4  nothing could be measured
    │   ├── MissingFramework    4  a framework is not installed in the measured interpreter
    │   └── MissingDevice       4  the device that is needed is not there
    ├── Regression              1  HEAD is slower than BASE, or worse
    ├── Unsure                  3  the gate cannot tell, or what it takes to tell was not measured
    ├── ExpectationsMissed      1  a scenario's expectation was not met
    ├── ExpectationsUnknown     3  a scenario's expectation could not be checked
    ├── FindingsUnknown         3  nothing looked for what ``--fail-on`` names
    ├── FindingsFailed          1  a rule found what ``--fail-on`` or the selftest does not allow
    └── Interrupted             130  stopped by the user; what was measured is kept

Exit codes are a contract (see docs/exit-codes.md): 0 done, 1 a gate or ``--fail-on`` found
something, 2 usage, 3 unsure, 4 nothing measured, 130 interrupted.
"""

from __future__ import annotations


class DlprofError(Exception):
    """Base of all errors; ``str(error)`` is one sentence for the user."""

    exit_code = 2


class UsageError(DlprofError):
    """The command line or an input file makes no sense."""


class SessionError(UsageError):
    """A session file is truncated, foreign, or from a newer major version."""


class HistoryError(UsageError):
    """A history cannot be read or added to; the message never holds a secret of its address."""


class NoReproducer(UsageError):
    """Of a finding no script can be made; the message says what is missing."""


class ScenarioError(UsageError):
    """A scenario file cannot be read, or says what makes no sense."""


class BadInterpreter(UsageError):
    """The interpreter that was named is no Python, is too old, or cannot be started."""


class Unsaved(UsageError):
    """What was measured could not be kept where it was to be; the message says where it is."""


class Unmeasured(DlprofError):
    """Nothing could be measured."""

    exit_code = 4


class MissingFramework(Unmeasured):
    """A framework is not installed in the measured interpreter."""


class MissingDevice(Unmeasured):
    """The device that was asked for, or that a framework needs, is not there."""


class ExpectationsMissed(DlprofError):
    """A scenario expects a finding that is not there, or one not to be there that is."""

    exit_code = 1


class ExpectationsUnknown(DlprofError):
    """Whether a scenario's expectation holds could not be told from what was measured."""

    exit_code = 3


class FindingsUnknown(DlprofError):
    """A rule that ``--fail-on`` names needs an instrument that looked at nothing."""

    exit_code = 3


class FindingsFailed(DlprofError):
    """A rule found what ``--fail-on`` or the selftest does not allow."""

    exit_code = 1


class Regression(DlprofError):
    """HEAD is slower than BASE, or worse."""

    exit_code = 1


class Unsure(DlprofError):
    """The gate cannot tell, the times cannot be compared, or the selftest is not complete."""

    exit_code = 3


class Interrupted(DlprofError):
    """Stopped by the user; what was measured is kept."""

    exit_code = 130
