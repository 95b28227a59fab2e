"""Values and their compressed buffers: one file an encoding.

`values` is the in-memory form, `contract` what an encoding offers, `registry` the list of all of them,
`choose` the one place that picks one for a page's values.
"""
