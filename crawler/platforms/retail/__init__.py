"""The retail platform."""
