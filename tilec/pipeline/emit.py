"""A compiled model in another form than the one that the runtime loads: `tilec codegen --emit`."""

from collections.abc import Callable
from pathlib import Path

from tilec.abi.manifest import read_manifest
from tilec.errors import UsageError, did_you_mean
from tilec.spec.device import DeviceSpec


def emitter(form: str, device: DeviceSpec) -> Callable[[str, Path], tuple[str, ...]]:
    """What writes the model of a name, compiled into a folder, as `form` to the folder of that name in it, and returns
    the names of the files.

    Raises UsageError for a form that the device's back end does not have.
    """
    from tilec.codegen.backend import backend_of

    backend = backend_of(device)
    forms = backend.forms() if backend is not None else {}
    if form not in forms:
        near = did_you_mean(form, forms)
        known = f"There are {', '.join(forms)}." if forms else f"Nothing else is made for {device.name}."
        raise UsageError(f"no form {form!r}", "--emit", f"Did you mean {near!r}?" if near else known)
    return lambda name, folder: forms[form](name, read_manifest(folder), folder, folder / form)
