"""The command line: one file per verb. Parse, call, print."""


def main() -> None:
    """Entry point of `tilec`."""
    import signal
    import sys

    from tilec import own_process
    from tilec.cli.streams import open_streams
    from tilec.threads import exit_process

    open_streams()
    own_process.begin()
    try:
        from tilec.cli.app import run

        run()
    except KeyboardInterrupt:  # before the commands are loaded
        sys.stderr.write("error: interrupted\n")
        exit_process(130)
    except SystemExit as end:
        exit_process(end.code if isinstance(end.code, int) else 0 if end.code is None else 1)
    finally:
        # All is done: an interrupt while Python ends would replace the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
