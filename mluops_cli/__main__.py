"""`python -m mluops_cli` is the command `mluops`."""

from mluops_cli.main import main

main()
