"""What can be chosen by name: tables that settings read, without torch."""
