"""The local backend and the runner on a real NVIDIA GPU: what the tests cannot pretend.

The tests have a pretended driver. Whether the real one says what we take it to say is seen here:
what a job sees, what its receipt says beside `nvidia-smi`, which errors count as a full GPU, and
how soon the GPU is free again. It takes one GPU that nobody else uses, torch and CuPy; numba, JAX
and cuda.core where they are installed. All of it takes about three minutes.
"""
