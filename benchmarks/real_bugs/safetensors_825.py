"""safetensors/safetensors#825: an array in Fortran order comes back with its values reordered."""

import sys

try:
    import numpy
    import safetensors.numpy
except ImportError as error:
    print(error)
    sys.exit(2)

c = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
wrong = False
for name, x in {"C": c, "Fortran": numpy.asfortranarray(c), "reversed": c[::-1]}.items():
    try:
        y = safetensors.numpy.load(safetensors.numpy.save({"x": x}))["x"]
    except ValueError as error:
        print(name, "refused:", error)
        continue
    print(name, "source", x.tolist(), "result", y.tolist())
    wrong |= y.tolist() != x.tolist()
sys.exit(wrong)
