"""The compiler in the background: one process for each cache, user and machine, which outlives the programs that ask.

Programs put orders into a queue in the cache (`queue.py`) and start the process where none lives (`start.py`). It runs
each order's command, one at a time, at low priority (`compiler.py`), and ends when the queue is empty.
"""

from tilec.background.failure import Failure
from tilec.background.order import Order, order_of
from tilec.background.queue import Queue
from tilec.background.start import start
from tilec.background.status import Status, tell

__all__ = ["Failure", "Order", "Queue", "Status", "order_of", "start", "tell"]
