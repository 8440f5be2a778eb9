"""The arithmetic of the reference meaning: floats are rounded once, and dtypes are element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nablair.ir.numeric import dtype
from nablair.ir.support.reference import element_of, narrow, to_attribute, wide
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, TensorType, Type

ELEMENTS = (F16, BF16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_an_array_becomes_an_attribute_and_comes_back(element: Type) -> None:
    kind = dtype(element)
    assert element_of(kind) is element
    array = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind).T  # not contiguous
    attribute = to_attribute(array)
    assert attribute.type is TensorType((2, 3), element)
    np.testing.assert_array_equal(np.frombuffer(attribute.data, kind).reshape(2, 3), array)


@pytest.mark.parametrize("kind", ["complex64", "datetime64[s]", "U3", "longdouble"])
def test_a_dtype_without_an_element_type_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="no element type for the dtype"):
        element_of(kind)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32], ids=["f16", "bf16", "f32"])
def test_narrow_rounds_once_to_nearest_even(kind: type) -> None:
    below, above = np.asarray(1.0, kind), np.nextafter(np.asarray(1.0, kind), np.asarray(2.0, kind))
    tie = (float(below) + float(above)) / 2
    cases = [tie, np.nextafter(tie, 2), np.nextafter(tie, 0), -tie]
    found = narrow(np.array(cases), np.dtype(kind))
    assert found.dtype == kind
    np.testing.assert_array_equal(found.astype(float), [1.0, float(above), 1.0, -1.0])


def test_wide_is_float64_for_floats_alone() -> None:
    assert wide(np.ones(2, np.float16)).dtype == np.float64
    for kind in (np.bool_, np.int8, np.uint64, np.float64):
        x = np.ones(2, kind)
        assert wide(x) is x
