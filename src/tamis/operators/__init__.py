"""What if a test is expensive? Operators of the user's own, their answers, and when to ask."""

from tamis.operators.caller import OperatorLimits
from tamis.operators.registry import REGISTRY, Operator, Registry, operator

__all__ = ["REGISTRY", "Operator", "OperatorLimits", "Registry", "operator"]
