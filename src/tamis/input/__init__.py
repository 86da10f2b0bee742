"""How do events and subscriptions get in? From Python objects, frames and files.

| module | what it answers |
|---|---|
| `formats` | which formats are there, and how is each recognised and read? |
| `sources`, `compression` | how is a path, a file, bytes or standard input opened? |
| `rows` | what is a batch of rows, whatever its format? |
| `json_lines`, `json_arrays`, `delimited`, … | how is one format read? |
| `tables`, `columnar` | rows as Arrow data, in slices of bounded size |
| `batches`, `arrivals` | rows gathered into batches, from files and from pipes |
| `sniffing` | what does a file seem to be that is not what its name says? |
| `subscription_rows`, `details` | which subscriptions do rows hold, and what else do they have? |
| `event_batches` | which events does a source hold, a batch at a time? |
| `frames`, `paths` | is this a frame (pandas, Polars, Arrow, …), is this a path? |
| `subscriptions`, `events`, `schemas` | what did a caller hand over? |

What cannot be read raises an `InputError` that names what can; a row that cannot be read is a
`RowError` in its place.
"""
