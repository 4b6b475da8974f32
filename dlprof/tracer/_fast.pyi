# fast.c

from collections.abc import Callable
from typing import Any

from dlprof.tracer.calls import Calls
from dlprof.tracer.ways import Way
from dlprof.tracer.wrappers import Builtin

class Recorder:
    def __init__(
        self, original: Callable[..., Any], record: Callable[..., Any], calls: Calls
    ) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

def learn(way: type[Way], builtin: type[Builtin]) -> None: ...
def attach(builtin: Builtin, recorder: Recorder, traced: Callable[..., Any]) -> None: ...
