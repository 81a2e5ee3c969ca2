"""Scalability as Theodolite defines it: demand and capacity, measured for the slots here and modelled beyond."""
