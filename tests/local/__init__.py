"""The whole local half as its users have it: the command line, a real dispatcher, real kernels."""
