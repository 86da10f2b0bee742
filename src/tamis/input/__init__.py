"""How do events and subscriptions get in? From Python objects, frames and files.

| module | what it answers |
|---|---|
| `frames` | is this a frame (pandas, Polars, Arrow, …), and what is it as Arrow data? |
| `subscriptions` | which rows of id and expression does this hold? |
| `events` | which events does this hold, all at once or a part at a time? |

What is not recognised is an `InputError` that names what is taken.
"""
