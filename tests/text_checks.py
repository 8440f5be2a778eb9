"""What must hold of any text: a diagnostic refuses it, or it is IR that its own text gives back and passes take."""

from __future__ import annotations

import warnings

from nablair.ir.diagnostics import Error, ParseError, VerifyError
from nablair.ir.dialects.builtin import Module
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager


def accepted(text: str) -> Module | None:
    """The module of a text, None when a diagnostic refuses it; anything else that is raised is a fault of ours."""
    try:
        module = parse_module(text, allow_unregistered=True)
        verify(module)
    except (ParseError, VerifyError) as error:
        error.render({"-": text})
        # Python's own complaint about IR that a check did not expect says nothing to the writer of the text.
        assert error.__cause__ is None or isinstance(error.__cause__, Error | ValueError), repr(error.__cause__)
        return None
    return module


def check_text(module: Module) -> None:
    """Both forms parse back to themselves, and each says what the other does."""
    custom, generic = print_op(module), print_op(module, generic=True)
    from_custom = parse_module(custom, allow_unregistered=True)
    from_generic = parse_module(generic, allow_unregistered=True)
    verify(from_custom)
    verify(from_generic)
    assert print_op(from_custom) == custom
    assert print_op(from_generic, generic=True) == generic
    # Custom form may put operands in the order of their first use, so it is the one to compare.
    bare = print_op(module, keep_names=False)
    assert print_op(from_custom, keep_names=False) == print_op(from_generic, keep_names=False) == bare


def check_pipeline(module: Module, pipeline: str) -> None:
    """A pipeline ends in valid IR or in a diagnostic of its own."""
    copy = module.clone()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a schedule asks for in vain is a remark
            PassManager.parse(pipeline, restore=False, verify_each=False).run(copy)
    except Error as error:
        if isinstance(error.__cause__, Exception) and not isinstance(error.__cause__, Error):
            raise error.__cause__ from None
        return
    verify(copy)
