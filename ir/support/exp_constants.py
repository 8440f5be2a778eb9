"""Constants of e**x = 2**n e**r, x = n ln 2 + r, for scalar forms of ops and for the expansions of `math`."""

from __future__ import annotations

LOG2_E = 1.4426950408889634
LN2_HIGH = {32: 0.6931471824645996, 64: 0.6931471805599453}
"""ln 2 rounded to the format; with fma its product with n is not rounded, so no trailing zeros are needed."""
LN2_LOW = {32: -1.904654299957768e-09, 64: 2.3190468138462996e-17}

EXP = {
    32: (0.5, 1.6666518e-01, 4.1666433e-02, 8.368985e-03, 1.3937856e-03),
    64: (
        0.5000000000000013, 0.16666666666666685, 0.0416666666665109, 0.008333333333315351, 0.001388888894816471,
        0.0001984126990077443, 2.4801488765837413e-05, 2.755723049275904e-06, 2.763169967932588e-07,
        2.511352160649988e-08,
    ),
}  # fmt: skip
"""q with e**r = 1 + r + r**2 q(r); minimax on |r| <= ln 2 / 2 for the absolute error of e**r: 2**-28.2 and 2**-58.0."""
