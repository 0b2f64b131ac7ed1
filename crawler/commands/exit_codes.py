"""The exit codes of the project's commands."""

ALL_HAVE_DATA = 0
"""Every target has data."""
RUN_FAILED = 1
"""The run itself failed, so that targets have no outcome, or lines are missing from the output."""
WRONG_USE = 2
"""An option, argument or setting is wrong. No feed was opened, and no request was sent to a platform."""
SOME_FAILED = 4
"""Some targets failed, rows of a target could not be read, or a listing lacks rows that the platform would serve."""
