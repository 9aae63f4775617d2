"""Faults from outside: kill -9, Ctrl-C, full and read-only disks, several processes on one folder and one cache."""
