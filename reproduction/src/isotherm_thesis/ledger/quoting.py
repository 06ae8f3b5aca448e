"""Numbers of records in sentences: the text names a row, and the number comes from the record.

{mixture-resgld: U3, F = 1.8: swap rate}            the row of a method: its mean and standard error
{cifar-vr-long: VR-reSGHMC minus reSGHMC: swaps}    a difference, paired run by run where the record has the runs
{mixture-csgld: SGLD over CSGLD: error of the mean} a ratio
{U1, naive: swap rate}                              a row of the experiment that the text is about
{U1, naive: swap rate: value}                       the mean alone; also `lowest` and `highest` over runs, and `positive`, the
                                                    number of runs above zero, as "5 of 6"
"""

import re
from typing import Any

from isotherm.demo.result import shown
from isotherm_thesis.ledger.record_numbers import Number, difference_of, ratio_of, row_of

Records = dict[str, dict[str, Any]]
_FORMS = ("value", "lowest", "highest", "positive")


def filled(text: str, records: Records, experiment: str | None = None) -> str:
    """The text with the numbers that it names."""
    return re.sub(r"\{([^{}]+)\}", lambda found: _quoted(found[1], records, experiment), text)


def _quoted(name: str, records: Records, experiment: str | None) -> str:
    parts = name.split(": ")
    form = parts.pop() if parts[-1] in _FORMS else None
    if len(parts) == 2 and experiment is not None:
        parts.insert(0, experiment)
    if len(parts) != 3 or parts[0] not in records:
        raise ValueError(f"`{{{name}}}` must name an experiment, a method and a metric.")
    record, (method, metric) = records[parts[0]], parts[1:]
    number, values = _number(record, method, metric)
    if number is None:
        raise ValueError(f"`{{{name}}}` must name a row of {parts[0]}.")
    if form in (None, "value"):
        return shown(number.value, None if form else number.error)
    if not values:
        raise ValueError(f"`{{{name}}}` must name a row with the values of its runs.")
    if form == "positive":
        return f"{sum(value > 0 for value in values)} of {len(values)}"
    return shown(min(values) if form == "lowest" else max(values))


def _number(record: dict[str, Any], method: str, metric: str) -> tuple[Number | None, list[float]]:
    """The number of a row, a difference or a ratio, and its values by run."""
    for word, combine in ((" minus ", difference_of), (" over ", ratio_of)):
        first, found, second = method.partition(word)
        if found:
            rows = [row_of(record, name, metric) for name in (first, second)]
            if rows[0] is None or rows[1] is None:
                return None, []
            pairs = zip(rows[0].get("values", ()), rows[1].get("values", ()), strict=False)
            return combine(rows[0], rows[1]), [a - b if word == " minus " else a / b for a, b in pairs]
    row = row_of(record, method, metric)
    if row is None:
        return None, []
    return Number.of_row(row), list(row.get("values", ()))
