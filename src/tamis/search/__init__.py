"""What did a query match in the past? Retrospective search over an archive.

    search = Search(archive, SearchIndexes(archive))
    page = search.find(Query.of("matches(body, 'oil')", schema), Asked(limit=10), Budget())

An index of words (tantivy) gives candidates; the kernels that match standing queries decide. So
the answer is exactly what the query would have matched.
"""

from tamis.search.indexer import Indexer
from tamis.search.indexes import SearchIndexes
from tamis.search.model import Asked, Budget, Hit, Order, Page, Place
from tamis.search.query import Query
from tamis.search.searching import Search

__all__ = [
    "Asked",
    "Budget",
    "Hit",
    "Indexer",
    "Order",
    "Page",
    "Place",
    "Query",
    "Search",
    "SearchIndexes",
]
