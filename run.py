"""Start msgexchange: ``python run.py --help``."""

import sys

from msgexchange.app import main

if __name__ == "__main__":
    sys.exit(main())
