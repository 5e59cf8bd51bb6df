"""Couriers: short pods that deliver results which no dev pod has taken."""
