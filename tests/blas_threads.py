"""One thread for NumPy's matrix products, which are small in tests: more would wait for each other, on busy cores.

Imported ahead of NumPy, which reads these variables then.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
