"""What the survey found off the contiguous float32 array, looked at again. No dlprof."""

import sys

import numpy
import torch

a = torch.arange(1.0, 4.0)
negated = torch.complex(a, a).conj().imag
print("negated tensor     ", negated.tolist(), "->", numpy.from_dlpack(negated).tolist())

conjugated = torch.complex(a, a).conj()
through = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(conjugated))
print("conjugated tensor  ", conjugated.tolist()[0], "->", through.tolist()[0])

scalar = numpy.array(1.0, dtype="float32")
view = torch.asarray(scalar, copy=False)
scalar[...] = 5
print("scalar, copy=False ", float(scalar), "->", float(view))

for copy in (False, None):
    try:
        a.__dlpack__(dl_device=(2, 0), copy=copy)
    except Exception as error:
        print(f"CUDA, copy={copy}".ljust(19), type(error).__name__, str(error)[:60])

swapped = numpy.arange(3, dtype=">f4")
try:
    import onnxruntime
except ImportError:
    onnxruntime = None
else:
    value = onnxruntime.OrtValue.ortvalue_from_numpy(swapped)
    print("swapped array      ", swapped.tolist(), "->", value.numpy().tolist())

versions = [f"numpy {numpy.__version__}", f"torch {torch.__version__}"]
versions += [f"onnxruntime {onnxruntime.__version__}"] if onnxruntime else []
print(sys.version.split()[0], *versions)
