"""Drivers of `martlet bench`, each a process of its own on this machine."""

from harness.places import martlet
from harness.process import Process
from harness.waiting import until


class Drivers:
    """Drivers on this machine, each with a thread, and the secret that they share with their controllers."""

    def __init__(self, folder, count):
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("0123456789abcdef0123456789abcdef\n")
        self.processes = [
            Process([martlet(), "bench", "driver", "--listen", "127.0.0.1:0", "--secret-file", self.secret, "--threads", "1"],
                    folder / f"driver{number + 1}") for number in range(count)]
        self.addresses = [self.line(number, "ready ") for number in range(count)]

    def said(self, number):
        return self.processes[number].log.read_text()

    def line(self, number, start):
        """Waits for a line that begins so; the rest of it."""
        found = until(lambda: [line for line in self.said(number).splitlines(keepends=True) if line.startswith(start) and line.endswith("\n")],
                      within=60, what=f"{start} from driver {number + 1}")
        return found[0].removeprefix(start).strip()

    def command(self, *arguments):
        return [str(part) for part in (martlet(), "bench", *arguments, "--drivers", ",".join(self.addresses), "--secret-file", self.secret)]

    def stop(self):
        for process in self.processes:
            process.kill()
