"""Which line of a running program converts arrays between frameworks, and what it costs there.

This layer runs inside the user's program, so it imports the standard library and the probes alone.

- ``targets``: the functions and methods that the probes declare as ways out and in. There is no
  second list. Numpy reads many arrays by the buffer protocol, and nothing of the producer is
  called then; so the consumer's functions are wrapped as well as the producer's methods.
- ``arrays``: of which framework an object is, and where its memory is. Never a read or a write.
- ``place``: the line of the user's own code; frames of frameworks and of packages are skipped.
- ``rows``: what was counted for each line; a file per process, replaced as a whole.
- ``state``: what all wrappers of a process share. ``ways``: what is known by function and place.
- ``wrappers``: the traced call. It notes times around the call and addresses after it, and keeps
  no array. Its frames take themselves out of the traceback of what the call raises.
- ``calls``: what a traced call does seldom: copies, capsules, containers, and arrays met first.
- ``install``: puts wrappers in place. An import hook does so when a framework's module was
  executed, before any other code can take a function out of it.
- ``tracebacks``: hides the frames of what else is wrapped, and of what runs the program.
- ``program``: runs a script or module as Python does, with processes that it starts.

The outermost traced call of a thread counts: ``numpy.asarray`` of a tensor calls
``Tensor.__array__``, and that is one conversion. A capsule counts where it is consumed.
A copy is a result whose memory is not the source's, seen from the addresses of both ends.
"""
