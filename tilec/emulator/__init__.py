"""Runs the text of GPU kernels on the CPU: right or wrong, races, barriers, sectors; never how fast."""

from tilec.emulator.build import build_kernels, compiler
from tilec.emulator.emulate import EmulatedKernel, Region, Shape, emulated
from tilec.emulator.errors import KernelFault
from tilec.emulator.findings import Barrier, Emulation, Finding, Requests, Site
from tilec.emulator.orders import ORDERS, Order

__all__ = [
    "ORDERS",
    "Barrier",
    "EmulatedKernel",
    "Emulation",
    "Finding",
    "KernelFault",
    "Order",
    "Region",
    "Requests",
    "Shape",
    "Site",
    "build_kernels",
    "compiler",
    "emulated",
]
