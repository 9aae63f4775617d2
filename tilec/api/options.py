"""onnxruntime's options: those with a meaning here are honoured, the others are taken and warned about once."""

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilec.api.warn_once import warn_once
from tilec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tilec.api.values import OrtValue


class GraphOptimizationLevel(Enum):
    """Levels of graph rewriting in onnxruntime; tilec always compiles the whole of it."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether onnxruntime runs nodes side by side; here the threads share each kernel."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """In which order onnxruntime runs nodes; here the plan decides."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options:
    """Attributes with defaults; setting one that does nothing, or that is unknown, is warned about once."""

    _defaults: "Mapping[str, Any]" = MappingProxyType({})
    _honoured: "frozenset[str]" = frozenset()
    _silent: "frozenset[str]" = frozenset()

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)
        self._entries: dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            kind = type(self).__name__
            if name not in self._defaults:
                warn_once(f"{kind} has no option {name!r}: it is ignored")
            elif name not in self._honoured | self._silent and value != self._defaults[name]:
                warn_once(f"{kind}.{name} has no effect in tilec")
        object.__setattr__(self, name, value)


class SessionOptions(_Options):
    """Options of an InferenceSession.

    Honoured: `intra_op_num_threads`, `enable_profiling` with `profile_file_prefix`, sizes given to
    `add_free_dimension_override_by_name`, values given to `add_initializer` and `add_external_initializers`.
    """

    _defaults = MappingProxyType(
        {
            "enable_cpu_mem_arena": True,
            "enable_mem_pattern": True,
            "enable_mem_reuse": True,
            "enable_profiling": False,
            "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
            "execution_order": ExecutionOrder.DEFAULT,
            "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
            "inter_op_num_threads": 0,
            "intra_op_num_threads": 0,
            "log_severity_level": -1,
            "log_verbosity_level": 0,
            "logid": "",
            "optimized_model_filepath": "",
            "profile_file_prefix": "tilec_profile_",
            "use_deterministic_compute": False,
            "use_per_session_threads": True,
        }
    )
    _honoured = frozenset({"intra_op_num_threads", "enable_profiling", "profile_file_prefix"})
    # The result is what was asked for, whichever way it is set: one graph in order, the same bytes in every run.
    _silent = frozenset(
        {"use_deterministic_compute", "log_severity_level", "log_verbosity_level", "logid", "inter_op_num_threads"}
    )

    if TYPE_CHECKING:
        intra_op_num_threads: int
        enable_profiling: bool
        use_deterministic_compute: bool
        profile_file_prefix: str

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Remember a configuration entry; `session.model_external_initializers_file_folder_path` has a meaning."""
        self._entries[key] = value
        if key not in _KNOWN_ENTRIES:
            warn_once(f"the session configuration entry {key!r} has no effect in tilec")

    def get_session_config_entry(self, key: str) -> str:
        """A configuration entry. Raises UsageError when it was never added."""
        return _entry(self._entries, key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the symbolic size `name` of the model's inputs. Raises UsageError for a negative one."""
        if int(size) < 0:
            raise UsageError(f"a size cannot be negative: {name}={size}")
        self._sizes[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:  # noqa: ARG002
        """Taken for onnxruntime's sake: no model of today says what its dimensions denote."""
        warn_once("free dimensions are overridden by name; denotations have no effect in tilec")

    def add_initializer(self, name: str, value: "OrtValue") -> None:
        """Use `value` for the initializer `name` of the model."""
        self._initializers[name] = value

    def add_external_initializers(self, names: "Iterable[str]", values: "Iterable[OrtValue]") -> None:
        """Use `values` for the initializers `names`, whose external files then need not be there."""
        self._initializers.update(zip(names, values, strict=True))

    def given_sizes(self) -> dict[str, int]:
        """Symbolic size of the model -> the size that it was given."""
        return dict(self._sizes)

    def given_initializers(self) -> "dict[str, OrtValue]":
        """Initializer -> the value that it was given."""
        return dict(self._initializers)

    def entry(self, key: str) -> str | None:
        """A configuration entry, if it was added."""
        return self._entries.get(key)

    def register_custom_ops_library(self, path: str) -> None:
        """Taken for onnxruntime's sake; operators of such libraries cannot be compiled."""
        warn_once(f"the library of custom operators {path!r} has no effect in tilec")

    def add_provider(self, name: str, options: "Mapping[str, str]") -> None:  # noqa: ARG002
        """Taken for onnxruntime's sake."""
        warn_once(f"the provider {name!r} has no effect in tilec")

    def has_providers(self) -> bool:
        """Whether providers were added: never."""
        return False


class RunOptions(_Options):
    """Options of one run; taken for onnxruntime's sake."""

    _defaults = MappingProxyType(
        {
            "log_severity_level": -1,
            "log_verbosity_level": 0,
            "logid": "",
            "only_execute_path_to_fetches": False,
            "terminate": False,
        }
    )
    _silent = frozenset({"log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches"})

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Remember a configuration entry."""
        self._entries[key] = value
        warn_once(f"the run configuration entry {key!r} has no effect in tilec")

    def get_run_config_entry(self, key: str) -> str:
        """A configuration entry. Raises UsageError when it was never added."""
        return _entry(self._entries, key)


EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""Session option: folder of the external data of a model given as bytes."""

# Entries about onnxruntime's own insides, that say nothing about results.
_KNOWN_ENTRIES = frozenset(
    {
        EXTERNAL_FOLDER,
        "session.load_model_format",
        "session.intra_op.allow_spinning",
        "session.inter_op.allow_spinning",
        "session.disable_prepacking",
        "session.use_env_allocators",
        "session.use_mmap",
        "session.set_denormal_as_zero",
    }
)


def _entry(entries: "Mapping[str, str]", key: str) -> str:
    if key not in entries:
        raise UsageError(f"no configuration entry is called {key!r}")
    return entries[key]
