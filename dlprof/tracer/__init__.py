"""Finds the lines of a running program that convert arrays, and what each costs.

This layer runs inside the user's program, so it imports the standard library and the probes alone.

- ``targets``: the functions and methods that the probes declare as exports and imports.
- ``arrays``: an object's framework, device and address. Nothing reads or writes its memory.
- ``place``: the lines of the user's own code, and their times by a thread that samples them.
- ``rows``: the counts of each line, and the file of each process.
- ``calls``: the traced call. It notes times around the call and addresses after it.
- ``install``: puts wrappers in place, by an import hook, and corrects the lines of warnings.
- ``program``: runs a script or module as Python does, with the processes that it starts.

The outermost traced call of a thread counts: ``numpy.asarray`` of a tensor calls
``Tensor.__array__``, and that is one conversion. A capsule counts where it is consumed.
A result is a copy if its address differs from the source's.
"""
