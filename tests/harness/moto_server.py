"""moto's S3, for a test: `moto_server.py PORT` serves it on 127.0.0.1, one request at a time.

moto closes what a key held before while another request may still read it, and answers that request with 500.
"""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

moto = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    with turn:
        answer = moto(environ, start_response)
        try:
            return list(answer)
        finally:
            getattr(answer, "close", lambda: None)()


# A thread per connection, so that one that is kept open holds up no other.
run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
