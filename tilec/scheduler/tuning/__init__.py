"""Tuning: candidates chosen by measurement, and the record of measurements."""
