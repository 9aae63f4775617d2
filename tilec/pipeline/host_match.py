"""Devices that this machine stands for: those whose code it runs, and those whose times it can measure."""

from typing import TYPE_CHECKING

from tilec.errors import UnavailableError

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec


def host_mismatch(device: "DeviceSpec") -> str | None:
    """Why the code of a device cannot run on this machine, as its back end answers."""
    from tilec.codegen.backend import backend_of, no_backend
    from tilec.spec.host import read_host

    backend = backend_of(device)
    return no_backend(device.name) if backend is None else backend.can_run(device, read_host())


def require_host(device: "DeviceSpec") -> None:
    """Raise UnavailableError unless what runs on this machine takes as long as on the device."""
    from tilec.codegen.backend import backend_of
    from tilec.spec.host import read_host

    why, backend = host_mismatch(device), backend_of(device)
    if why is None and backend is not None:
        why = backend.can_time(device, read_host())
    if why is not None:
        raise UnavailableError(
            f"{device.name} cannot be profiled here: {why}",
            hint="This machine can be: --device host, or a file that `tilec device probe` wrote here. "
            "A record that was measured on the device is read with --record.",
        )
