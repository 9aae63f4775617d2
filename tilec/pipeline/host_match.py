"""Which devices this machine stands for: whose code it runs, and whose times it may tell."""

from typing import TYPE_CHECKING

from tilec.errors import UnavailableError

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec


def host_mismatch(device: "DeviceSpec") -> str | None:
    """Why the code of a device cannot run on this machine: another processor, or wider registers."""
    from tilec.spec.host import read_host

    host = read_host()
    if device.target.backend != "cpu":
        return f"no {device.name} code generator yet"
    same = device.target.triple is None or device.target.triple.split("-")[0] == host.triple.split("-")[0]
    if same and (device.vector is None or device.vector.bytes <= host.vector_bytes):
        return None
    return f"this machine does not run {device.name} code"


def require_host(device: "DeviceSpec") -> None:
    """Raise UnavailableError unless what runs on this machine takes as long as on the device."""
    from tilec.spec.host import read_host

    host = read_host()
    why = host_mismatch(device)
    if why is None and device.target.processor not in (None, host.processor):
        why = f"it has a {device.target.processor}, this machine a {host.processor}"
    if why is None and device.cores > host.cores:
        why = f"it has {device.cores} cores, this machine {host.cores}"
    if why is not None:
        raise UnavailableError(
            f"{device.name} cannot be profiled here: {why}",
            hint="This machine can be: --device host, or a file that `tilec device probe` wrote here. "
            "A record that was measured on the device is read with --record.",
        )
