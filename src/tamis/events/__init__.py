"""How are events read? Typed attributes, encoded as the codes that the kernels use.

    source ─▶ read: typed values in carriers ─▶ rank: codes ─▶ EventArrays
              (an invalid value is a reject)

| layout | read by | values are |
|---|---|---|
| dicts, other mappings | `mappings`, one event: `single` | as `read_value` converts them |
| JSON texts, a JSON column | `json_events`, `json_texts` | the same; decimals keep their digits |
| Arrow columns, structs | `arrow`, `arrow_values` | as `read_value` converts Arrow's values |
| an Arrow map as event, texts of CSV | `arrow` | texts that spell values (`spelled`) |

`language.types.read_value` is the definition: a bulk path converts the values it is sure of and
calls `read_value` for the rest. NULL, an absent column and an event that is None are missing
attributes, not rejects. Instants are whole microseconds between the years 1 and 9999. Values are
never rounded to fit, so nanoseconds that are not whole microseconds are rejects, and so is a
seventh digit in a text.
"""
