"""What if a predicate is expensive? User-defined operators, their answers, and when to call
them.
"""

from tamis.operators.caller import OperatorLimits
from tamis.operators.registry import REGISTRY, Operator, Registry, operator

__all__ = ["REGISTRY", "Operator", "OperatorLimits", "Registry", "operator"]
