"""Checks of ops, for who writes a plugin: all that follows from the class of an op, tried on its samples.

    from nablair.testing import check

    check(Softsign)                                                       # the samples of the class
    check(Softsign, shapes=((4, 5),), reference=lambda x: x / (1 + abs(x)))

For each sample and element type: the text reads back, the types that `infer` says are those of the values, the meaning
is that of the reference, eager and compiled code on every device give the same, and first and second derivatives agree
with central differences in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .ir.declared import Argument, Sample
from .ir.definition import MANY, Op
from .ir.diagnostics import Error, shown
from .ir.interfaces import Expands, HasMaskedVjp, HasPartials, HasVjp, IsLinear
from .ir.location import caller_location
from .ir.support.tensor_op import TensorOp
from .ir.types import F32, F64, I1, I32, FloatType, TensorType, Type, element_type

if TYPE_CHECKING:
    from .ir.dialects.builtin import Module

Reference = Callable[..., Any]

STEP = 1e-6
"""The step of the central differences."""
EVERYWHERE = (F32, I32, I1)
"""The element types that are tried on all devices; the others on the CPU alone, which has them all."""
DIFFERENTIABLE = (HasPartials, IsLinear, HasVjp, HasMaskedVjp, Expands)


class CheckFailed(Error, AssertionError):
    """An op that is not what it should be: the op, the sample and what was wrong."""


def check(
    cls: type[Op],
    samples: Iterable[Sample] | None = None,
    *,
    shapes: Sequence[Sequence[int]] | None = None,
    reference: Reference | None = None,
    properties: Mapping[str, Any] | None = None,
    devices: Iterable[str] | None = None,
    ulps: float = 64.0,
) -> None:
    """Try a tensor-level op on samples: those given, else one of operands of these shapes, else those of the class.

    `reference` takes float64 (or integer) arrays and gives the result, or a tuple; without it the op's own meaning in
    float64 is what others are compared with.  `devices`: all that are there.  `ulps`: how far a result may lie from
    the reference, in units in the last place of the largest operand, of 1 or of the result itself.

    Errors: CheckFailed, and Error for a class that is not a tensor-level op or has nothing to be tried on.
    """
    from .runtime.devices import device_names  # late

    if not (isinstance(cls, type) and issubclass(cls, TensorOp)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Error(f"check: needs the class of a tensor-level op, got {shown(cls)}", caller_location())
    if shapes is not None:
        arguments = tuple([Argument(tuple(shape)) for shape in shapes])
        samples = [*(samples or ()), Sample("", arguments, properties=dict(properties or {}))]
    chosen = cls.samples if samples is None else tuple(samples)
    if not chosen:
        message = f"check: {cls.name} has no samples; declare `samples`, or give the shapes of its operands"
        raise Error(message, caller_location())
    names = device_names() if devices is None else list(devices)
    for trial in _trials(cls, chosen, reference, ulps):
        trial.text()
        trial.meaning()
        for device in names:
            if device == "cpu" or trial.element in EVERYWHERE:
                trial.device(device)
        trial.derivatives()


def _trials(
    cls: type[TensorOp], samples: Iterable[Sample], reference: Reference | None, ulps: float
) -> Iterator[_Trial]:
    from .ir.interpreter import samples as declared  # late

    for sample in samples:
        for one, elements in declared.cases(cls, sample):
            own = declared.reference(cls, one) if reference is None and one.reference else reference
            for element in elements:
                yield _Trial(cls, one, element, own, ulps)


class _Trial:
    """An op on one sample with one element type."""

    def __init__(
        self, cls: type[TensorOp], sample: Sample, element: Type, reference: Reference | None, ulps: float
    ) -> None:
        from .ir.interpreter.samples import arrays  # late

        self.cls = cls
        self.sample = sample
        self.element = element
        self.reference = reference
        self.ulps = ulps
        self.arrays = arrays(sample.arguments, element, f"{cls.name} {sample.note} {element}")
        fields = cls.definition.operands
        self.is_variadic = len(fields) == 1 and fields[0].arity == MANY
        try:
            self.module = self._module()
        except Error as error:
            raise self._failed(f"cannot be built: {error.message}") from error

    def _failed(self, what: str) -> CheckFailed:
        shapes = " and ".join(str(a.shape) for a in self.sample.arguments)
        properties = f" with {dict(self.sample.properties)}" if self.sample.properties else ""
        message = f"{self.cls.name} on {self.element} operands of shapes {shapes}{properties} {what}"
        return CheckFailed(message, caller_location())

    def _module(self) -> Module:
        """A module whose @main is the op."""
        from .ir.builders.tensor import TensorBuilder  # late
        from .ir.dialects.builtin import Module  # late
        from .ir.dialects.func import Func, Return  # late

        function = Func.of("main", [TensorType(a.shape, a.element or self.element) for a in self.sample.arguments], [])
        b = TensorBuilder(function.entry)
        operands = [list(function.arguments)] if self.is_variadic else function.arguments
        made = b.apply(self.cls, *operands, **self.sample.properties)
        b.create(Return, made if isinstance(made, tuple) else (made,))
        function.update_type()
        return Module.of([function])

    def text(self) -> None:
        """Both forms read back as what they are."""
        from .ir.parser import parse_module  # late
        from .ir.printer import print_op  # late
        from .ir.verifier import verify  # late

        for generic in (False, True):
            text = print_op(self.module, generic=generic)
            try:
                again = parse_module(text)
                verify(again)
            except Error as error:
                raise self._failed(f"prints text that does not read back: {error.message}\n{text}") from error
            if print_op(again, generic=generic) != text:
                raise self._failed(f"prints text that reads back as another:\n{text}\n{print_op(again)}")

    def meaning(self) -> None:
        """The interpreter gives what the reference gives, in the types that `infer` says."""
        from .ir.numeric import dtype  # late

        results = self._interpreted()
        types: Any = self._types()
        for number, (result, type) in enumerate(zip(results, types, strict=True)):
            if (result.dtype, result.shape) != (dtype(type.element), type.shape):
                raise self._failed(
                    f"gives a {type} by infer, and by evaluate an array of {result.dtype} with shape {result.shape}"
                    f" (result {number})"
                )
        self.compare(results, "the interpreter")

    def _types(self) -> Sequence[Type]:
        function: Any = self.module.symbol("main")
        return function.type.results

    def _interpreted(self) -> list[Any]:
        import numpy as np

        from .ir.interpreter.machine import Interpreter  # late

        try:
            return [np.asarray(v) for v in Interpreter(self.module).call("main", self.arrays)]
        except Error as error:
            raise self._failed(f"has no meaning in the interpreter: {error}") from error

    def _expected(self) -> list[Any]:
        """What the reference gives, not rounded to the element type."""
        import numpy as np

        if self.reference is None:
            return self._interpreted()
        wide = [a if a.dtype.kind in "biu" else a.astype(np.float64) for a in self.arrays]
        with np.errstate(all="ignore"):
            found = self.reference(*wide)
        return [np.asarray(v) for v in (found if isinstance(found, tuple) else (found,))]

    def compare(self, results: Sequence[Any], who: str) -> None:
        """CheckFailed where results lie too far from the reference."""
        import numpy as np

        scale = max([1.0, *[float(np.max(np.abs(a.astype(np.float64)), initial=0.0)) for a in self.arrays]])
        expected = self._expected()
        if len(expected) != len(results):
            raise self._failed(f"has {len(results)} results, and its reference gives {len(expected)}")
        for number, (wanted, found, type) in enumerate(zip(expected, results, self._types(), strict=True)):
            if wanted.shape != found.shape:
                raise self._failed(f"has shape {found.shape} by {who}, {wanted.shape} by its reference")
            self._near(wanted, found, element_type(type), scale, f"result {number} of {who}")

    def _near(self, wanted: Any, found: Any, element: Type, scale: float, what: str) -> None:
        import numpy as np

        x, y = (np.atleast_1d(np.asarray(v).astype(np.float64)) for v in (wanted, found))
        unit = 2.0 ** -(element.mantissa_bits + 1) if isinstance(element, FloatType) else 0.0
        with np.errstate(invalid="ignore"):
            good = np.abs(x - y) <= self.ulps * unit * np.maximum(np.abs(x), scale)
        good |= (x == y) | (np.isnan(x) & np.isnan(y))
        if not good.all():
            at = tuple(np.argwhere(~good)[0].tolist())
            raise self._failed(f"is wrong: {what} at {list(at)} is {y[at]:.17g}, and should be {x[at]:.17g}")

    def _applied(self, *tensors: Any) -> Any:
        from .autograd.trace import emit  # late
        from .ir.builders.methods import method_of  # late

        return emit(method_of(self.cls), *tensors, variadic=self.is_variadic, **self.sample.properties)

    def device(self, device: str) -> None:
        """Eager and compiled calls on a device."""
        import numpy as np

        from . import autograd as ag  # late

        tensors = [ag.asarray(a, device=device) for a in self.arrays]
        for how, function in (("an eager call", self._applied), ("a compiled call", ag.jit(self._applied))):
            try:
                found = function(*tensors)
                results = [np.asarray(v) for v in (found if isinstance(found, tuple) else (found,))]
            except CheckFailed:
                raise
            except Error as error:
                raise self._failed(f"fails in {how} on {device}: {error}") from error
            self.compare(results, f"{how} on {device}")

    # Derivatives.

    def derivatives(self) -> None:
        """The first and the second, where the op says that it has them."""
        smooth = self.sample.smooth and issubclass(self.cls, DIFFERENTIABLE)
        wrt = [i for i, a in enumerate(self.sample.arguments) if a.element is None]
        results = self._float_results(self.module, "main")
        if self.element is not F64 or not smooth or not wrt or not results:
            return
        module = self.module.clone()
        self._check_derivative(module, "main", list(self.arrays), wrt, 1e-6, "first")
        seeds = self._seeds(self.module, "main")
        self._check_derivative(module, "main_vjp", [*self.arrays, *seeds], wrt, 1e-5, "second")

    def _float_results(self, module: Module, name: str) -> list[int]:
        function: Any = module.symbol(name)
        return [i for i, type in enumerate(function.type.results) if isinstance(element_type(type), FloatType)]

    def _seeds(self, module: Module, name: str) -> list[Any]:
        """A cotangent for each float result, always the same."""
        import numpy as np

        function: Any = module.symbol(name)
        random = np.random.default_rng(3)
        return [random.uniform(0.5, 1.5, function.type.results[i].shape) for i in self._float_results(module, name)]

    def _check_derivative(
        self, module: Module, name: str, arrays: list[Any], wrt: Sequence[int], tolerance: float, which: str
    ) -> None:
        """Differentiate a function of the module, and compare with central differences of sum(results * seeds)."""
        import numpy as np

        from .ir.interpreter.machine import Interpreter  # late
        from .passes.manager import PassManager  # late

        places, seeds = self._float_results(module, name), self._seeds(module, name)
        numbers = ",".join(map(str, wrt))
        try:
            PassManager.parse(f"autodiff{{function={name} wrt={numbers}}}").run(module)
        except Error as error:
            raise self._failed(f"has no {which} derivative: {error}") from error
        machine = Interpreter(module)

        def value(moved: list[Any]) -> float:
            results = machine.call(name, moved)
            return float(sum((np.asarray(results[p]) * s).sum() for p, s in zip(places, seeds, strict=True)))

        results = machine.call(f"{name}_vjp", [*arrays, *seeds])
        for operand, gradient in zip(wrt, results[len(results) - len(wrt) :], strict=True):
            for index in np.ndindex(*arrays[operand].shape):
                ends: list[float] = []
                for step in (STEP, -STEP):
                    moved = [a.copy() for a in arrays]
                    moved[operand][index] += step
                    ends.append(value(moved))
                wanted, found = (ends[0] - ends[1]) / (2 * STEP), float(np.asarray(gradient)[index])
                if not abs(wanted - found) <= tolerance * max(1.0, abs(wanted)):
                    raise self._failed(
                        f"has a wrong {which} derivative: for operand {operand} at {list(index)} it is {found:.9g}, and"
                        f" differences give {wanted:.9g}"
                    )
