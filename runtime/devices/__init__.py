"""The devices that can run an executable."""
