"""``dlprof conformance``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.errors import FindingsFailed, Unsure, UsageError
from dlprof.runner import files, options
from dlprof.runner.axes import axis_value, simulated_in
from dlprof.runner.options import Option, Several, Text
from dlprof.text.clean import counted, nearest


def _severity(word: str) -> Iterable[str]:
    from dlprof.conformance.check import SEVERITIES

    if word not in SEVERITIES:
        raise UsageError(f"expected one of {', '.join(SEVERITIES)}")
    return [word]


DEVICE = replace(
    options.DEVICES,
    flag="--device",
    kind=Text(lambda word: axis_value("device", word)[0]),
    help="Where all arrays are: cpu, cuda or simulated.",
    panel=options.MEASURING,
    default="cpu",
)
FAIL_ON = replace(
    options.FAIL_ON,
    kind=Several(_severity, commas=True),
    help="Exit code 1 if a must, a should or a may is violated, or a stricter clause.",
    metavar="must|should|may",
)
JSON = replace(options.JSON, help="Write the verdicts as JSON; - prints them instead of the table.")
REPRO = Option(
    "repro",
    Text(),
    "Print a script that shows the answer to this check without dlprof.",
    options.OUTPUT,
    metavar="CHECK",
)
OUTPUT = replace(options.SESSION, help="Keep the verdicts here as JSON, or the script of --repro.")


@takes(
    *(DEVICE, *options.INTERPRETER, FAIL_ON, REPRO, options.FULL),
    *(OUTPUT, JSON, options.HTML, options.MARKDOWN),
)
def conformance(
    framework: Annotated[str, typer.Argument(help="The framework, such as torch.")],
    *,
    given: Given,
) -> None:
    """Check a framework against DLPack 1.3 and the array API standard, as producer and consumer.

    Example: dlprof conformance numpy
    """
    from dlprof.cli.outputs import Outputs, deliver
    from dlprof.conformance import CHECKS
    from dlprof.conformance.check import SEVERITIES
    from dlprof.report import check_document as reports
    from dlprof.runner import conformance as runner
    from dlprof.runner.catalog import check_cuda, inspect_interpreter
    from dlprof.runner.progress import Bar

    outputs = Outputs.parse(given.raw)
    severities, repro, output = given[FAIL_ON], given[REPRO], given.output
    if output is not None:
        files.check_writable(output)
    if repro is not None and repro not in CHECKS:
        hint = nearest(repro, CHECKS, cutoff=0.0)
        raise UsageError(f"--repro {repro}: there is no such check; {hint}")
    values = given.settled()
    simulated = simulated_in([given[DEVICE]])
    catalog = inspect_interpreter(values["python"], values["probes"], simulated)
    probe = catalog.installed(framework)
    device = "cuda" if simulated else given[DEVICE]
    if device == "cuda":
        check_cuda(catalog, [probe.name])
    if repro is not None:
        deliver(runner.script(catalog, probe, CHECKS[repro], device), output)
        return
    with Bar(f"checking {probe.name}") as bar:
        bar.start(len(CHECKS))
        found = tuple(runner.conformance(catalog, probe, device, bar.step))
    python = str(catalog.interpreter["python"])
    pairs = [(item.name, given.raw[item.key]) for item in (DEVICE, options.PYTHON)]
    pairs += [(options.PROBES.name, file) for file in given.raw[options.PROBES.key] or ()]
    again = shlex.join(word for pair in pairs if pair[1] for word in pair)
    version, device = probe.version or "", given[DEVICE]
    measured = reports.Conformance(probe.name, version, python, found, device, again)
    document = reports.conformance_document(measured)
    outputs.print_report(document)
    outputs.write(document, {"--json": lambda: reports.as_json(measured)})
    if output is not None:
        deliver(reports.as_json(measured), output)
    if not severities:
        return
    least = max(severities, key=SEVERITIES.index)
    if wrong := measured.wrong(least):
        raise FindingsFailed(f"{counted(len(wrong), 'clause')} of a {least} or stricter violated")
    if unknown := measured.having(("unknown",), least):
        raise Unsure(f"{counted(len(unknown), 'clause')} of a {least} or stricter unknown")
