"""The types of the settings, their checks, and the base class of commands that check them."""
