"""Users of one's own, in a process that took a while to start."""

from clicking_locustfile import *  # noqa: F403
from gevent import monkey

monkey.get_original("time", "sleep")(4.0)
