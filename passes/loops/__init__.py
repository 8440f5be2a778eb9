"""Passes at loop level that apply a kernel's schedule."""
