"""What an op can say of itself: one class for each kind of statement.

    class Transpose(TensorOp, ViewForm, Evaluates): ..

An interface is a mixin without state whose abstract members the op defines; a class that names an interface and lacks
a member of it is refused where it is defined.  Passes ask with `isinstance` and `issubclass`, never for an attribute by
its name, so that a plugin's op has all that a built-in op has, pyright checks the signatures, and
`ir-opt --show-op` lists what an op states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .operations import Operation

if TYPE_CHECKING:
    from .attributes import Attribute
    from .builders.masks import Masks
    from .builders.point import PointBuilder
    from .builders.scalar import ScalarBuilder
    from .builders.subscripts import AffineSubscript
    from .builders.tensor import TensorBuilder
    from .cotangents import Cotangent, Mask, Partial
    from .support.error_bounds import Bounded
    from .symbols import SymbolTables
    from .types import Type
    from .values import Value


class Interface(Operation):
    """Base of the interfaces; `members` are those that an op must define."""

    __slots__ = ()
    members: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.members = abstract_members(cls)


def _is_abstract(member: object) -> bool:
    return getattr(member, "__isabstractmethod__", False)


def abstract_members(cls: type[Operation]) -> tuple[str, ...]:
    """The names in a class's own body that it leaves to others to define."""
    return tuple([name for name, member in vars(cls).items() if _is_abstract(member)])


def interfaces_of(cls: type[Operation]) -> list[type[Interface]]:
    """The interfaces that a class states, its own and its bases'."""
    return [base for base in cls.__mro__ if issubclass(base, Interface) and Interface in base.__bases__]


def undefined_members(cls: type[Operation]) -> list[str]:
    """`Interface.member` for what the bases of a class, interfaces and families, leave to it and it does not define."""
    found: list[tuple[type[Operation], str]] = [(b, n) for b in cls.__mro__ for n in vars(b).get("members", ())]
    return [f"{base.__name__}.{name}" for base, name in found if _is_abstract(getattr(cls, name))]


class Evaluates(Interface):
    """Has a meaning on NumPy arrays and scalars: a result, or a sequence of as many as the op has."""

    __slots__ = ()

    @abstractmethod
    def evaluate(self, *operands: Any, **none: Any) -> Any:
        """The result, or one for each of the op's results: NumPy arrays or scalars of the results' dtypes."""


class BoundsErrors(Interface):
    """Says how far its result, computed in finite precision, may lie from the exact one (`support.error_bounds`)."""

    __slots__ = ()

    @abstractmethod
    def bound(self, unit: float, *operands: Any, **none: Any) -> Bounded:
        """The result and its error from those of the operands, rounded to a type with the unit roundoff `unit`, 0 for
        integers and bools."""


# How an op is written at the kernel level: one of these, or Expands.


class PointForm(Interface):
    """Says what one point of each of its results is."""

    __slots__ = ()

    @abstractmethod
    def point(self, k: PointBuilder) -> Value | Sequence[Value]:
        """The values at the point `k.axes`."""


class ViewForm(Interface):
    """Says which element of its first operand each of its elements is; never makes a kernel of its own."""

    __slots__ = ()

    @abstractmethod
    def view(self, k: PointBuilder, subscripts: Sequence[AffineSubscript | int]) -> Sequence[AffineSubscript | int]:
        """The subscripts of the operand from those of the result."""


class ScatterForm(Interface):
    """Says where each point of its last operand is added to the first, whose shape the result has."""

    __slots__ = ()

    @abstractmethod
    def scatter(self, k: PointBuilder) -> tuple[Value, Sequence[AffineSubscript | int]]:
        """The value and the subscripts that it is added at."""


class Expands(Interface):
    """Is a composition of other tensor-level ops."""

    __slots__ = ()

    @abstractmethod
    def expand(self, b: TensorBuilder) -> Value | Sequence[Value]:
        """The results, of the types that the op's results have."""


class ExpandsToScalars(Interface):
    """A scalar op that is a composition of ops of `arith` and `math`, which targets get in its place: the pass
    expand-math puts them there, for vectors too."""

    __slots__ = ()

    @abstractmethod
    def expand_scalar(self, b: ScalarBuilder) -> Value:
        """The result, of the type that the op's result has."""


# The derivative: at most one of these; without one, that of the expansion.


class HasPartials(Interface):
    """An elementwise op that says, for each operand, how a change of it changes the result: linear in the change.

    The forward derivative of the result is then the sum of the partials of the operands' tangents, and the cotangent of
    an operand is its partial of the result's cotangent."""

    __slots__ = ()

    @abstractmethod
    def partials(self, b: TensorBuilder) -> Iterable[Partial]:
        """A partial for each operand; `ONE` passes a change on, `Masked` is exactly 0 where a condition does not hold,
        so that whatever an untaken branch computes never reaches a gradient."""


class IsLinear(Interface):
    """Linear in its float operands together, with one result: says the transposed map."""

    __slots__ = ()

    @abstractmethod
    def transpose(self, b: TensorBuilder, ct: Value) -> Iterable[Value | None]:
        """Cotangents of the operands from that of the result; None for what has none (integers)."""


class HasVjp(Interface):
    """Any other op with a derivative of its own."""

    __slots__ = ()

    @abstractmethod
    def vjp(self, b: TensorBuilder, *cts: Any, **none: Any) -> Iterable[Value | None]:
        """Cotangents of the operands from those of the results; None for what has none (integers) and in place of the
        cotangent of a result that nothing depends on."""


class HasMaskedVjp(Interface):
    """An op that multiplies cotangents by its operands and sums what belongs to different places: it must itself keep
    what is dead out of the sum, and so sees the masks (`ir.builders.masks`)."""

    __slots__ = ()

    @abstractmethod
    def masked_vjp(self, m: Masks, *cts: Any, **none: Any) -> Iterable[Cotangent | None]:
        """As `HasVjp.vjp`, of cotangents with masks; `m.b` is the builder."""


class NoDerivative(Interface):
    """Its derivative is 0 wherever it exists."""

    __slots__ = ()


class MovesMasks(Interface):
    """Says how a mask passes it, beside `IsLinear` or `HasVjp`.  An op that does not is live everywhere where any
    element of its results is."""

    __slots__ = ()

    @abstractmethod
    def live(self, m: Masks, *masks: Any, **none: Any) -> Iterable[Mask]:
        """For each operand, where it is live from where the results are; None for a result that nothing depends on."""


class Tame(Interface):
    """Its values and derivatives are finite for finite operands, but for overflow."""

    __slots__ = ()

    def is_tame(self) -> bool:
        """Whether that holds with these operands and properties."""
        return True


class ConditionallySpeculatable(Interface):
    """Pure, but for some operands it is an error to run it."""

    __slots__ = ()

    @abstractmethod
    def is_speculatable(self) -> bool:
        """Whether it is known to be none with these operands, so that it may run where it would not have."""


class MonoidOp(Interface):
    """An associative binary op with an identity, which a fold may combine with."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def identity(cls, type: Type) -> Attribute:
        """The identity as a constant of a type."""


class Branches(Interface):
    """A terminator that passes values to the arguments of the blocks it branches to."""

    __slots__ = ()

    @abstractmethod
    def successor_operands(self, index: int) -> Sequence[Value]:
        """The values for the successor `index`."""


class VerifiesSymbols(Interface):
    """Refers to symbols, and checks that they are there."""

    __slots__ = ()

    @abstractmethod
    def verify_symbols(self, tables: SymbolTables) -> None:
        """Raise VerifyError where a symbol is missing or of another kind."""


class CustomForm(Interface):
    """Has a custom form that no `assembly` string can say."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def parse(cls, p: Any) -> Any:
        """The op, from what follows its name."""

    @abstractmethod
    def print(self, w: Any) -> None:
        """Write what follows the name."""
