"""The simulated retail platform."""
