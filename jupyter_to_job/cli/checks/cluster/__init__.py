"""The checks of `doctor --cluster`: an administrator's look at a controller and its cluster."""
