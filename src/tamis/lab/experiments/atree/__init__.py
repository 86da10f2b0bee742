"""A-Tree 2021, §6: Figures 8 to 13 and Table 4."""

from tamis.lab.experiments.atree import ads, construction, designs, matching, memory

EXPERIMENTS = (
    *designs.EXPERIMENTS,
    *memory.EXPERIMENTS,
    *matching.EXPERIMENTS,
    *construction.EXPERIMENTS,
    *ads.EXPERIMENTS,
)
