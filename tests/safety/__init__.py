"""What malformed or hostile input can do to the command line: nothing but an error with the right exit code."""
