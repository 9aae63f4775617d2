"""The fourth stage: verify a compiled model against a reference on fresh random inputs.

It imports nothing: processes that hold one side of a comparison begin here and need little of the package.
"""
