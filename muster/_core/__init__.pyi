"""Compiled kernels of muster; call them through the Python modules of the same names."""

supports_v3: bool
