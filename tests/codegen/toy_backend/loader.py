"""Opens models of the toy back end; one run at a time, on the calling thread."""

import ctypes

from tilec.runtime.host_memory import HostMemory
from tilec.runtime.memory import address, map_weights


class Run(HostMemory):
    def __init__(self, library, manifest, weights):
        super().__init__(manifest, weights)
        self._library = library

    def launch(self, segment, times):
        self._library.run(ctypes.c_int64(segment), ctypes.c_void_p(address(self.table)))


class Executor:
    def __init__(self, library, manifest, weights):
        self._parts = library, manifest, weights

    def take_run(self):
        return Run(*self._parts)

    def give_run(self, run):
        return


def load(folder, manifest, threads, pin, check):
    library = ctypes.CDLL(str((folder / manifest.library.file).resolve()))
    return Executor(library, manifest, [map_weights(folder, file, check) for file in manifest.weights])
