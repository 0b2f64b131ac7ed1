"""The microblog platform."""
