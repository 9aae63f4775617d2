"""`python program.py onnxruntime|tilec MODEL`: opens a session and runs it once, as a short program would."""

import sys

import numpy as np

if sys.argv[1] == "tilec":
    import tilec as onnxruntime
else:
    import onnxruntime

TYPES = {"float": "f4", "double": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "bool": "?", "uint8": "u1"}

session = onnxruntime.InferenceSession(sys.argv[2])
feeds = {}
for port in session.get_inputs():
    # What is open is 1 for batches, 3 for channels of pictures, 320 else.
    last = len(port.shape) - 1
    open_ = [1, *([3] if last == 3 else []), *[320] * last]
    shape = [extent if isinstance(extent, int) else open_[axis] for axis, extent in enumerate(port.shape)]
    feeds[port.name] = np.ones(shape, TYPES[port.type[len("tensor(") : -1]])
session.run(None, feeds)
