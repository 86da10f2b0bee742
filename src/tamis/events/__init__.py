"""What does an event look like? Typed attributes, encoded into the codes the kernels want.

    source ─▶ read: typed values in carriers ─▶ rank: codes ─▶ EventArrays
              (what does not fit is a reject)

| layout | read by | values are |
|---|---|---|
| dicts, other mappings | `mappings`, one event: `single` | as `read_value` has them |
| JSON texts, a JSON column | `mappings` | the same; a decimal keeps all its digits |
| Arrow columns, structs | `arrow`, `arrow_values` | as `read_value` has Arrow's own values |
| an Arrow map as event, CSV | `arrow`, `delimited` | texts that spell values (`spelled`) |

`language.types.read_value` is the law: a bulk path converts what it is sure of, and asks it about
the rest. NULL, an absent column and an event that is None are missing attributes, not rejects.
Instants are whole microseconds between the years 1 and 9999: nothing is rounded to fit, so that
nanoseconds that are none are rejects, as a seventh digit in a text is.
"""
