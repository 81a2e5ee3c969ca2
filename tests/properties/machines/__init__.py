"""State machines that others build on."""
