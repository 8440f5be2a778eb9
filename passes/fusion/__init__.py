"""Fusion of kernel launches: their structure, how two become one, and what is tidied afterwards."""
