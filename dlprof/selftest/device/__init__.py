"""The synthetic framework on a CUDA device: real memory, streams and events, faults on purpose.

It knows the device by the layer that the instruments use (:class:`dlprof.device.cuda.Gpu`) and by
nothing else, so that tests put a simulated one in its place.
"""
