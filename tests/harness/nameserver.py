"""A DNS server on loopback that knows aliases: what a filter that asks DNS is pointed to."""

import socketserver
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class Nameserver:
    """`aliases` maps names to names; None for a name without an alias, an error code for one that fails."""

    def __init__(self, aliases, ttl=300):
        self.aliases, self.ttl, self.asked = aliases, ttl, []

    def start(self):
        owner = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                packet, connection = self.request
                connection.sendto(owner.answer(packet), self.client_address)

        self.server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def answer(self, packet):
        query = dns.message.from_wire(packet)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        question = query.question[0]
        name = question.name.to_text().rstrip(".")
        self.asked.append(name)
        alias = self.aliases.get(name.lower(), dns.rcode.NXDOMAIN)
        if isinstance(alias, str):
            response.answer.append(dns.rrset.from_text(question.name, self.ttl, "IN", "CNAME", alias + "."))
        elif alias is not None:
            response.set_rcode(alias)
        return response.to_wire()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
