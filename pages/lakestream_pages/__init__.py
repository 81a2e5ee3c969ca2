"""What the HTML reports share: their look, and their plots as SVG."""
