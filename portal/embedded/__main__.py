"""`python -m portal.embedded demo|smoke|manage [options]`: what `./run` hands over to."""

import sys

from portal.embedded import demo, manage, smoke

VERBS = {"demo": demo.main, "smoke": smoke.main, "manage": manage.main}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in VERBS:
        print("usage: python -m portal.embedded demo|smoke|manage [options]", file=sys.stderr)
        sys.exit(2)
    sys.exit(VERBS[sys.argv[1]](sys.argv[2:]))
