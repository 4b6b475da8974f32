"""Does a framework follow DLPack 1.3 and the Python array API standard, as producer and consumer?

A check is a function of a framework. It runs in a worker, and its own text is the reproducer.
"""
