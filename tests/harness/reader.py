"""Someone who does what a page for operators says, on the machines of a site, and compares what they see with the page."""

import re
import time

from harness import page

# The page has the reader wait for these: they are asked again until they say what the page promises.
WAITED_FOR = re.compile(r"(martlet |swift-)(recon|dispersion-report)\b|curl -s http://127\.0\.0\.1:\d+/healthcheck")
PATIENCE = 240


class Reader:
    """`wrong` has each place where a machine said something else, with what it said."""

    def __init__(self, name, site, transcript):
        self.name, self.site, self.transcript, self.wrong = name, site, transcript, []

    def do(self, step):
        if step.path:
            for name in step.machines:
                self.site.put(name, step.path, step.text, appended=step.appended)
            return
        for machines in [[name] for name in step.machines] if step.in_turn else [step.machines]:
            for command, promised in step.commands:
                self.type(step, machines, command, promised)

    def type(self, step, machines, command, promised):
        answers = self.site.on_each(machines, lambda name: self.answer(name, command, promised))
        self.site.deliver()
        for name, (seen, status) in answers.items():
            print(f"{time.strftime('%T')} {name}$ {command}", *seen, sep="\n", file=self.transcript, flush=True)
            where = f"{self.name}:{step.line}: on {name}, {command}"
            if status:
                journal, _ = self.site.type(name, "journalctl --no-pager --lines 30")
                raise AssertionError("\n".join([f"{where}\nended with {status}:", *seen, "its journal:", *journal]))
            if line := page.differs(promised, seen):
                self.wrong.append(f"{where}\nfirst difference: {line!r}\nseen:\n" + "\n".join(seen))

    def answer(self, name, command, promised):
        end = time.monotonic() + (PATIENCE if WAITED_FOR.match(command) else 0)
        while True:
            seen, status = self.site.type(name, command)
            if (status == 0 and not page.differs(promised, seen)) or time.monotonic() > end:
                return seen, status
            time.sleep(1)
