"""What every backend must do, told at the service: the same tests for each of them."""
