"""The simulated microblog platform."""
