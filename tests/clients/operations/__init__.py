"""Every operation of S3 with every documented parameter, asked of two systems: `docs/reference/s3-operations.md`.

What there is comes from botocore's description of the service. `ground.py` makes what the requests need, `values.py` says what each sends,
`effects.py` what has to be seen for it to have worked, `ask.py` asks, and `page.py` writes the page.
"""
