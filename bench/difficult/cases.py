"""All cases, by name."""

from bench.difficult import cases_endpoints, cases_situations, cases_vendors, cases_work
from bench.difficult.case import Case

CASES: dict[str, Case] = {
    each.name: each for group in (cases_vendors, cases_endpoints, cases_work, cases_situations) for each in group.CASES
}
