"""Irmak: Figures 3.3 to 3.7 and 4.3 to 4.5, Tables 4.1 to 4.4."""

from tamis.lab.experiments.irmak import clusters, growth, partitions, quintiles

EXPERIMENTS = (
    growth.FIGURE_3_3,
    growth.FIGURE_3_4,
    growth.FIGURE_3_5,
    quintiles.FIGURE_3_6,
    partitions.FIGURE_3_7,
    clusters.TABLE_4_1,
    clusters.TABLE_4_2,
    clusters.FIGURE_4_3,
    clusters.TABLE_4_3,
    clusters.TABLE_4_4,
    quintiles.FIGURE_4_4,
    clusters.FIGURE_4_5,
)
