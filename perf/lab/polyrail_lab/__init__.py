"""Hosts and rails on one machine, out of Linux namespaces and shaped veth links."""
