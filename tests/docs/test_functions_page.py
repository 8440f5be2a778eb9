"""docs/functions.md lists every public name of the front-end with the first sentence of its docstring.

`python tests/docs/test_functions_page.py` writes the page anew.
"""

from inspect import getdoc, isclass, ismodule, signature
from pathlib import Path

from nablair import autograd as ag
from nablair.autograd.dtypes import DType
from nablair.autograd.functions.from_ops import declaring
from nablair.ir.dialect import BUILT_IN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"
HEAD = """# Functions

All public names of `nablair.autograd`, generated from their docstrings. Names, arguments and meaning follow the Python
array API standard where it has the function.
"""


def sentence(name: str) -> str:
    """The first sentence of what a name's docstring says."""
    first = (getdoc(getattr(ag, name)) or "").partition("\n\n")[0].replace("\n", " ")
    end = first.find(". ")
    return (first if end < 0 else first[: end + 1]).replace("|", "\\|")


def call(name: str) -> str:
    """A function with its parameters and their defaults, a class by its name."""
    thing = getattr(ag, name)
    if isclass(thing):
        return f"ag.{name}"
    shown: list[str] = []
    by_place = 0
    for parameter in signature(thing).parameters.values():
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind == parameter.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
            shown.append("*")
        default = parameter.default
        known = "" if default is parameter.empty else f"={default.__name__ if isclass(default) else repr(default)}"
        shown.append(star + parameter.name + known)
        if parameter.kind == parameter.POSITIONAL_ONLY:
            by_place = len(shown)
    if by_place:
        shown.insert(by_place, "/")
    return f"ag.{name}({', '.join(shown)})"


def page() -> str:
    """The text of the page."""
    plugins = {name for name, cls in declaring().items() if cls.name.partition(".")[0] not in BUILT_IN}
    names = sorted(set(ag.__all__) - plugins, key=str.lower)
    things = {name: getattr(ag, name) for name in names}
    dtypes = [n for n in names if isinstance(things[n], DType)]
    modules = [n for n in names if ismodule(things[n])]
    constants = [n for n in names if things[n] is None or isinstance(things[n], float)]
    rest = [n for n in names if n not in {*dtypes, *modules, *constants}]
    rows = [f"| `{call(n)}` | {sentence(n)} |" for n in rest]
    lists = [
        f"Element types: {', '.join(f'`ag.{n}`' for n in dtypes)}.",
        f"Constants: {', '.join(f'`ag.{n}`' for n in constants)}.",
        f"Modules: {', '.join(f'`ag.{n}` ({sentence(n)[:-1]})' for n in modules)}.",
    ]
    return "\n".join([HEAD, "| name | what it is |", "| --- | --- |", *rows, "", *(f"{line}\n" for line in lists)])


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), f"run python {Path(__file__).name} to write docs/functions.md anew"


def test_every_name_says_what_it_is() -> None:
    assert not [line for line in page().splitlines() if line.endswith("|  |")]


if __name__ == "__main__":
    PAGE.write_text(page())
