"""Fontoura 2010, §5: Tables 2 to 4 and Figures 7 to 14."""

from tamis.lab.experiments.fontoura import depth, dnf_size, selectivity, size

EXPERIMENTS = (
    depth.TABLE_2,
    dnf_size.FIGURE_7,
    depth.FIGURE_8,
    depth.TABLE_3,
    depth.FIGURE_9,
    depth.FIGURE_10,
    depth.FIGURE_11,
    size.TABLE_4,
    size.FIGURE_12,
    size.FIGURE_13,
    selectivity.FIGURE_14,
)
