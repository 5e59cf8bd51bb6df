"""What having the extension costs those who do not use it at the moment."""
