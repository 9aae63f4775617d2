"""Names that identifiers of a kernel must not have: words of C++, macros of its headers, what tile.h defines."""

import re
from functools import cache
from importlib import resources

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq

NULL NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL EOF linux unix
M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2
__global__ __shared__ __device__ __restrict__ __launch_bounds__ __forceinline__

tid tid_ bid_ lane unit smem smem_ vec f16 bf16
"""


@cache
def reserved_names() -> frozenset[str]:
    """All of them; names of tile.h are those that begin with `t_` or `T_`."""
    header = resources.files("tilec.codegen.gpu").joinpath("tile.h").read_text(encoding="utf-8")
    return frozenset(_WORDS.split()) | frozenset(re.findall(r"\b[tT]_\w+", header))
