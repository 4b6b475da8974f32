"""What several parts of a session are made of: times over processes, shares, verdicts."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from dlprof.text.json_text import Free

DISTURBED = 0.5
"""From this share of a process's samples on, its median is one of a disturbed sample."""
WIDEST_SHARE = 0.25
"""A share whose interval reaches further to either side is not written as a number."""


ALIGNMENT, ALIGNMENTS = "source_alignment_bytes", "source_alignments_bytes"
"""In the evidence of *ownership*: of one process, and of several that agree but for that."""


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", populate_by_name=True, allow_inf_nan=False
    )
    __pydantic_extra__: dict[str, Free] = Field(init=False)


class ProcessSamples(Model):
    """What one process measured: samples in ns per call, each the mean of ``loops`` calls.

    ``disturbed`` is the share of samples of which half or more is the time of other programs; None
    where nobody knows.
    """

    round: int
    loops: int
    samples_ns: list[float]
    page_faults_per_call: float | None = None
    disturbed: float | None = None


class Mode(Model):
    """Processes that agree among themselves and with no others."""

    median_ns: float
    rounds: list[int]
    page_faults_per_call: float | None = None


class TimeMeasure(Model):
    """A time per call: the median of the process medians and its interval.

    ``ci95_ns`` is None for a single process and where there are several ``modes``.
    ``same_as`` names the measure that this one repeats; it then has no samples of its own.
    """

    median_ns: float
    ci95_ns: tuple[float, float] | None
    min_ns: float
    processes: list[ProcessSamples] = []
    modes: list[Mode] = []
    same_as: str | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether in half of the processes half of the samples are the time of other programs."""
        disturbed = sum((one.disturbed or 0.0) >= DISTURBED for one in self.processes)
        return 0 < len(self.processes) <= 2 * disturbed

    @property
    def modes_ns(self) -> tuple[float, float]:
        """The fastest and the slowest mode; twice the median where there are none."""
        found = [mode.median_ns for mode in self.modes] or [self.median_ns]
        return min(found), max(found)


class Share(Model):
    """A part of a whole, from 0 to 1; noise may carry it a little below 0."""

    median: float
    ci95: tuple[float, float] | None = None

    @property
    def half(self) -> float | None:
        """How far the interval reaches to its longer side; None for a single process."""
        if self.ci95 is None:
            return None
        return max(self.ci95[1] - self.median, self.median - self.ci95[0])

    @property
    def is_known(self) -> bool:
        """Whether the processes agree well enough for it to be a number."""
        return self.half is not None and self.half <= WIDEST_SHARE
