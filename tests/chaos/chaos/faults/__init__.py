"""All that can happen: `FAULTS` is the table. To add a kind of fault, add a class to one of these modules."""

from chaos.faults import changes, disturbances, endings, held, readings, requests
from chaos.faults.base import FAULTS, Ending, Fault, Phase, fault_from_json, fault_to_json, kinds

__all__ = [
    "FAULTS",
    "Ending",
    "Fault",
    "Phase",
    "changes",
    "disturbances",
    "endings",
    "fault_from_json",
    "fault_to_json",
    "held",
    "kinds",
    "readings",
    "requests",
]
