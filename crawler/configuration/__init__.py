"""How the project is set up: the types and checks of its settings, its add-on and components, the event loop."""
