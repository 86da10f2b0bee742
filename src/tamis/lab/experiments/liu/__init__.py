"""Liu 2007, §5: Figures 4 to 8."""

from tamis.lab.experiments.liu.calls import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
