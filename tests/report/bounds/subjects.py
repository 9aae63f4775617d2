"""Subjects to report on."""

from tilec.analysis.bounds.subject import Slope, Subject, of_einsum
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"
MIB = 2**20


def subject_of(einsum: Einsum, count: int = 1) -> Subject:
    slopes = [Slope.of("oro", oro(einsum)), Slope.of("oro+", oro_plus(einsum))]
    return of_einsum(einsum, slopes, count=count)


def square() -> Subject:
    return subject_of(parse_einsum(GEMM, {"m": 4096, "n": 4096, "k": 4096}, 32))


def small() -> Subject:
    return subject_of(parse_einsum(GEMM, {"m": 6, "n": 4, "k": 5}, {"A": 16, "B": 8, "C": 32}), count=3)
