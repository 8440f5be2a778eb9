"""What a loop pass learns when the loop that a schedule names cannot be transformed."""

from __future__ import annotations


class IllegalError(Exception):
    """Why a loop stays as it is; the loop pass that meets it says so and goes on with the next one."""
