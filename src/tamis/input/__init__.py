"""How are events and subscriptions read? From Python objects, frames and files.

| module | contents |
|---|---|
| `formats` | the formats, and how each is recognised and read |
| `sources`, `compression` | opens a path, a file, bytes or standard input |
| `rows` | a batch of rows of any format |
| `json_lines`, `json_arrays`, `delimited`, … | one format each |
| `tables`, `columnar` | rows as Arrow data, in slices of bounded size |
| `batches`, `arrivals` | rows collected into batches, from files and from pipes |
| `sniffing` | recognises files whose contents do not fit their name |
| `subscription_rows`, `details` | the subscriptions in rows, and their other columns |
| `event_batches` | the events of a source in batches |
| `frames`, `paths` | recognises frames (pandas, Polars, Arrow, …) and paths |
| `subscriptions`, `events`, `schemas` | the arguments of callers |

Unreadable input raises an `InputError` that lists what can be read; an unreadable row is a
`RowError` in its place.
"""
