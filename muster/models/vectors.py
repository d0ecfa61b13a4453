"""The product at the heart of a layer, in vector operations of its own.

Of loops in Python the compiler reads and writes every sum again for each four inputs. Here OUTPUTS rows of sums for
AT_ONCE pairs stay in registers while all inputs go by: a third less time. A sum is built input by input from the bias
on, by fused multiply-adds where the processor has them, so that its bits are those of the loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from muster.data import Floats32

OUTPUTS, VECTORS, WIDTH = 4, 2, 8
AT_ONCE = VECTORS * WIDTH

_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_INDEX = ir.IntType(64)


def _multiply(typing: Any, weight: Any, bias: Any, x: Any, y: Any, k: Any, t: Any, rectified: Any) -> tuple[Any, Any]:
    """y[k : k + OUTPUTS, t : t + AT_ONCE] = weightᵀ x + bias there, or the larger of that and 0 if `rectified`."""
    del typing

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, given: Any) -> Any:
        weights, biases, inputs, outputs = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:4], given[:4], strict=True)
        )
        k, t, rectified = given[4:]

        def place(array: Any, row: Any, column: Any) -> Any:
            """Of an entry of a matrix whose rows are contiguous."""
            stride = builder.udiv(builder.extract_value(array.strides, 0), _INDEX(4))
            return builder.gep(array.data, [builder.add(builder.mul(row, stride), column)])

        def spread(number: Any) -> Any:
            one = builder.insert_element(_VECTOR(ir.Undefined), number, ir.IntType(32)(0))
            lanes = ir.VectorType(ir.IntType(32), WIDTH)([0] * WIDTH)
            return builder.shuffle_vector(one, _VECTOR(ir.Undefined), lanes)

        def vectors_at(start: Any) -> list[Any]:
            parts = [builder.gep(start, [_INDEX(v * WIDTH)]) for v in range(VECTORS)]
            return [builder.bitcast(part, _VECTOR.as_pointer()) for part in parts]

        sums = []
        for a in range(OUTPUTS):
            first = spread(builder.load(builder.gep(biases.data, [builder.add(k, _INDEX(a))])))
            sums.append([cgutils.alloca_once_value(builder, first) for _ in range(VECTORS)])
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f32")
        with cgutils.for_range(builder, builder.extract_value(weights.shape, 0), intp=_INDEX) as loop:
            read = [builder.load(part, align=4) for part in vectors_at(place(inputs, loop.index, t))]
            row = place(weights, loop.index, k)
            for a in range(OUTPUTS):
                factor = spread(builder.load(builder.gep(row, [_INDEX(a)])))
                for v in range(VECTORS):
                    builder.store(builder.call(add, [factor, read[v], builder.load(sums[a][v])]), sums[a][v])
        zero = _VECTOR([0.0] * WIDTH)
        for a in range(OUTPUTS):
            for v, part in enumerate(vectors_at(place(outputs, builder.add(k, _INDEX(a)), t))):
                found = builder.load(sums[a][v])
                positive = builder.select(builder.fcmp_ordered(">", found, zero), found, zero)
                builder.store(builder.select(rectified, positive, found), part, align=4)
        return context.get_dummy_value()

    return types.void(weight, bias, x, y, k, t, rectified), generate


def _multiply_plainly(
    weight: Floats32, bias: Floats32, x: Floats32, y: Floats32, k: int, t: int, rectified: bool
) -> None:
    """The same without a compiler."""
    rows, lanes = slice(k, k + OUTPUTS), slice(t, t + AT_ONCE)
    found = weight[:, rows].T @ x[: len(weight), lanes] + bias[rows, None]
    y[rows, lanes] = np.maximum(found, 0) if rectified else found


multiply: Any = _multiply_plainly if config.DISABLE_JIT else intrinsic(_multiply)  # type: ignore[attr-defined]
