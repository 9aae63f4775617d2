"""Faults that are planted in a copy of the package one at a time, each of which the tests named with it must find."""
