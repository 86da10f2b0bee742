"""Synthetic subscriptions and events; each workload is generated from one seed.

`abe_gen` is the A-Tree paper's generator, `ads_like` has the shape of its advertisements,
`fontoura` is Fontoura's. `in_sets` makes conjunctions of value sets, `sigma_like` detections full
of substrings, `keywords` searches with the statistics of Irmak's query log. All have
`expressions(n)`, `events(n)`, `event_table(n)` and their `schema`, and `generate` writes them to
files. `overlaps` makes the workload of Liu's schedules: conjunctions of calls and their results, as
arrays.
"""

from tamis.lab.workloads.abe_forest import AbeParams
from tamis.lab.workloads.abe_gen import AbeGen
from tamis.lab.workloads.ads_like import AdsLike, AdsLikeParams
from tamis.lab.workloads.fontoura import Fontoura, FontouraParams
from tamis.lab.workloads.in_sets import InSets, InSetsParams
from tamis.lab.workloads.keywords import KeywordParams, Keywords
from tamis.lab.workloads.overlaps import OverlapParams, Overlaps
from tamis.lab.workloads.sigma_like import SigmaLike, SigmaLikeParams

__all__ = [
    "AbeGen",
    "AbeParams",
    "AdsLike",
    "AdsLikeParams",
    "Fontoura",
    "FontouraParams",
    "InSets",
    "InSetsParams",
    "KeywordParams",
    "Keywords",
    "OverlapParams",
    "Overlaps",
    "SigmaLike",
    "SigmaLikeParams",
]
