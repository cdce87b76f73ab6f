"""What the black-box tests stand on: starting clusters of either make, talking to them, looking at their disks.

Nothing in here knows how Martlet works inside; it drives programs and reads files.
"""
