"""Numbers, shares and counts as text."""

import math

from cvxnmf.display import formatting


def test_numbers_in_words():
    assert formatting.number(1234567.891) == "1,234,568"
    assert formatting.number(-2.5e-9, 2) == "−2.5·10⁻⁹"
    assert formatting.lower_bound(2.99999999, 3) == "2.99"
    assert formatting.percent(0.15501) == "16%"
    assert formatting.percent(1e-12) == "0.0001%"
    assert formatting.number(math.nan) == "not known"
