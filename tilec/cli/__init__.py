"""The command line: one file per verb. Parse, call, print."""


def main() -> None:
    """Entry point of `tilec`."""
    import signal
    import sys

    try:
        from tilec.cli.app import run

        run()
    except KeyboardInterrupt:  # before the commands are loaded
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    finally:
        # All is done: an interrupt while Python ends would replace the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
