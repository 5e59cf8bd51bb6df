"""From job directories to Jobs, lists, changes and logs."""
