"""The long way of `martlet advise`: configurations are measured on this machine, curves predict each from the others, and the
first answer to each question is measured as well.

    tests/advise/measured.py --martlet target/release/martlet --output /tmp/measured

Needs root, and a machine that does nothing else: other load is noise. What lies in the output already is not measured again.
The exit status is 1 when fewer than ten twelfths of the configurations are predicted, or an answer lies outside of its band.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent / "limited"
QUESTIONS = ("least-cost", "most-capacity", "most-throughput")
# So many of the configurations must be predicted within 15 % of throughput and 30 % of p99: ten of twelve, fourteen of sixteen.
ENOUGH = 10 / 12


def run(*command):
    """What a command says; its complaint ends this program."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def manifests(folder):
    return sorted(Path(folder).glob("*.json"))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def figures(folder):
    """Throughput and p99 (seconds) of a configuration: the geometric means of its runs."""
    works = [json.loads(path.read_text())["stages"][-1]["works"][0]["total"] for path in manifests(folder)]
    rate = geometric_mean([work["rate"] for work in works])
    return rate, geometric_mean([work["latency"]["percentiles"]["99"] / 1e3 for work in works])


def plan_of(answer, size, text, first_port):
    """The plan that measures an answer: its numbers, and the rest as in the plan of the others."""
    drives = sum(line["count"] for line in answer["bill"] if line["role"] == "drive for objects")
    counts = answer["counts"]
    wanted = {"gateways": [counts["gateways"]], "storage_nodes": [counts["storage"]], "sizes": [size]}
    lines = [f"{key} = {value}" for key, value in wanted.items()]
    lines += [line for line in text.splitlines() if line.split(" =")[0] not in wanted]
    lines.insert(0, f"drives = {drives // counts['storage']}")
    return "\n".join(lines if first_port is None else [f"first_port = {first_port}", *lines]) + "\n"


def judge(martlet, output, rates, curves, plan_text, first_port):
    """Asks each question and measures the first answer; how many lie within their bands."""
    good = 0
    for question in QUESTIONS:
        answer = json.loads(run(martlet, "advise", "buy", question, HERE / "inventory.toml", "--rates", rates, "--top", "1",
                                "--json"))["answers"][0]
        counts, band = answer["counts"], answer["throughput"]["requests"]
        plan = output / f"{question}.toml"
        plan.write_text(plan_of(answer, 65536, plan_text, first_port))
        run(martlet, "advise", "measure", plan, "--output", output / question)
        rate, p99 = figures(output / question)
        is_within = band["low"] <= rate <= band["high"]
        good += is_within
        print(f"{question}: {counts['gateways']} gateways, {counts['storage']} storage nodes for {answer['totals']['price']:.0f}")
        print(f"  buy       {band['value']:.0f} ({band['low']:.0f} to {band['high']:.0f}) requests/s at most")
        at = f"{counts['gateways']},{counts['storage']},65536,64"
        curve = json.loads(run(martlet, "advise", "fit", *curves, "--at", at, "--json"))["predictions"][0]
        seen, tail = curve["rate"], curve["p99"]
        print(f"  curves    {seen['value']:.0f} ({seen['low']:.0f} to {seen['high']:.0f}) requests/s, p99 "
              f"{tail['value'] * 1e3:.0f} ({tail['low'] * 1e3:.0f} to {tail['high'] * 1e3:.0f}) ms")
        print(f"  measured  {rate:.0f} requests/s, p99 {p99 * 1e3:.0f} ms in {len(manifests(output / question))} runs: "
              f"{'within' if is_within else 'OUTSIDE OF'} the band of buy")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--martlet", required=True)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--plan", type=Path, default=HERE / "sixteen.toml")
    parser.add_argument("--first-port", type=int)
    line = parser.parse_args()
    plan_text = line.plan.read_text()
    line.output.mkdir(parents=True, exist_ok=True)
    plan, rates = line.output / "plan.toml", line.output / "rates.toml"
    plan.write_text(plan_text if line.first_port is None else f"first_port = {line.first_port}\n{plan_text}")
    run(line.martlet, "advise", "measure", plan, "--output", line.output / "plan")
    curves = manifests(line.output / "plan")
    rates.unlink(missing_ok=True)
    print(run(line.martlet, "advise", "fit", *curves, "--write-rates", rates))
    left_out = json.loads(run(line.martlet, "advise", "fit", *curves, "--json"))["curves"]["left_out"]
    errors = [(one["rate"][1] / one["rate"][0] - 1, one["p99"][1] / one["p99"][0] - 1) for one in left_out]
    predicted = sum(abs(rate) <= 0.15 and abs(p99) <= 0.3 for rate, p99 in errors)
    good = judge(line.martlet, line.output, rates, curves, plan_text, line.first_port)
    print(f"{predicted} of {len(errors)} configurations predicted, {good} of {len(QUESTIONS)} first answers within their bands")
    return 0 if predicted >= ENOUGH * len(errors) and good == len(QUESTIONS) else 1


if __name__ == "__main__":
    sys.exit(main())
