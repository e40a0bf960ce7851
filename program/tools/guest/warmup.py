"""What a template computes once so that programs need not: libraries import and cache much on their first use."""

from __future__ import annotations

import importlib
import sys


def warm() -> None:
    """Use the libraries that are loaded a little."""
    if "numpy" in sys.modules:
        np = importlib.import_module("numpy")
        np.linalg.solve(np.eye(2) + 1.0, np.arange(2.0))
        np.fft.fft(np.arange(4.0))
        np.random.rand(2)
        str(np.array([[1.5, 2.0]]))
    if "sympy" in sys.modules:
        sympy = importlib.import_module("sympy")
        x, y = sympy.symbols("x y")
        str(sympy.sqrt(8) + sympy.Rational(1, 3) + sympy.pi.evalf(20))
        sympy.simplify(sympy.expand((x + y) ** 2) / (x + y))
        sympy.solve(x**2 - 3 * x + 2, x)
        sympy.solve([x + y - 3, x - y - 1], [x, y])
        sympy.integrate(x**2 * sympy.sin(x), x)
        sympy.diff(sympy.exp(x) / x, x)
        sympy.limit(sympy.sin(x) / x, x, 0)
        sympy.summation(x, (x, 1, y))
        sympy.factorint(360), sympy.nextprime(100), sympy.binomial(5, 2)
        sympy.Matrix([[1, 2], [3, 5]]).inv()
