"""`schedule`: from a graph and a device to a plan, without executing or compiling anything."""

from tilec.scheduler.schedule import schedule

__all__ = ["schedule"]
