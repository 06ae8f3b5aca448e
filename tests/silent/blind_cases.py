"""Wrong and good runs by somebody who had not seen the checks, on targets of known truth; see `tests.silent.cases` for the others.

Estimates of means are in true standard deviations.
"""

from tests.silent import blind_good, blind_wrong
from tests.silent.case import Case

CASES: list[Case] = [*blind_wrong.CASES, *blind_good.CASES]
