"""Functions of onnxruntime's module about the process: devices, providers, log levels."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.api.warn_once import host_device, warn_once
from tilec.errors import UsageError
from tilec.version import __version__

COMPILED = "TilecExecutionProvider"
PLAIN = "CPUExecutionProvider"

_LEVELS = {0: logging.DEBUG, 1: logging.INFO, 2: logging.WARNING, 3: logging.ERROR, 4: logging.CRITICAL}


class OrtDevice:
    """A place for values: the CPU's memory."""

    def __init__(self, name: str, number: int = 0) -> None:
        self._name, self._number = host_device(name), number

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":  # noqa: ARG004
        """The device of a name; another one than `cpu` is warned about."""
        return OrtDevice(ort_device_name, device_id)

    def device_id(self) -> int:
        """The device's number."""
        return self._number

    def device_type(self) -> int:
        """onnxruntime's number of the kind of device: 0, the CPU."""
        return 0


def get_available_providers() -> list[str]:
    """Names of providers: compiled code, and onnxruntime's CPU provider for the nodes that are not compiled."""
    return [COMPILED, PLAIN]


get_all_providers = get_available_providers


def get_device() -> str:
    """The kind of device that models run on: `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """The version of tilec."""
    return __version__


def get_build_info() -> str:
    """Name and version of the package."""
    return f"tilec {get_version_string()}"


def set_default_logger_severity(severity: int) -> None:
    """Let tilec's log tell what is at least this severe: 0 everything, 2 warnings, 4 fatal errors."""
    if severity not in _LEVELS:
        raise UsageError(f"there is no severity {severity}: it is one of 0 to 4")
    logging.getLogger("tilec").setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Taken for onnxruntime's sake."""


def set_seed(seed: int) -> None:  # noqa: ARG001
    """Taken for onnxruntime's sake: its random operators run with the seed that the model gives."""
    warn_once("set_seed has no effect in tilec")


def enable_telemetry_events() -> None:
    """Taken for onnxruntime's sake: nothing is ever sent."""


def disable_telemetry_events() -> None:
    """Taken for onnxruntime's sake: nothing is ever sent."""


def has_collective_ops() -> bool:
    """Whether several processes can share a model: no."""
    return False


def chosen_providers(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> list[str]:
    """The providers of a session, whatever is asked for; others, and options, are warned about once.

    Raises UsageError for something that is no provider, and for options that do not go with the providers.
    """
    if isinstance(providers, str):
        raise UsageError("providers is a list of names", hint=f"Pass [{providers!r}].")
    if options and len(options) != len(providers or ()):
        raise UsageError(f"{len(options)} provider_options do not go with {len(providers or ())} providers")
    for provider in providers or ():
        name = provider if isinstance(provider, str) else provider[0] if provider else ""
        if not isinstance(name, str) or not name:
            raise UsageError(f"{provider!r} is no provider", hint=f"Known: {', '.join(get_available_providers())}.")
        if name not in get_available_providers():
            warn_once(f"the provider {name!r} is not available: models are compiled for the CPU")
        if not isinstance(provider, str) and provider[1]:
            warn_once(f"options of the provider {name!r} have no effect in tilec")
    if any(options or ()):
        warn_once("provider_options have no effect in tilec")
    return get_available_providers()
