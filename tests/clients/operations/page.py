"""docs/reference/s3-operations.md: what both systems answered."""

from collections import Counter, defaultdict

from clients.operations.ask import ANOTHER, ELSEWHERE, IGNORED, TAKEN, WORKS
from harness.places import REPOSITORY

WORDS = (WORKS, TAKEN, IGNORED, ANOTHER)
# Of nearly every operation: said once.
EVERYWHERE = ("ExpectedBucketOwner", "RequestPayer")
PAGE = REPOSITORY / "docs/reference/s3-operations.md"


def text(ours, theirs):
    """The page."""
    served = {name: (ours[name], theirs[name]) for name in ours}
    counts = [sum(pair[side].is_served for pair in served.values()) for side in (0, 1)]
    lines = [
        "# Operations of S3, beside OpenStack's s3api", "",
        "Every operation that botocore's description of S3 has, with every parameter of it, asked of Martlet and of OpenStack Swift 2.38.3's s3api",
        "in the same way: `make s3-operations` writes this page, `tests/clients/operations` has the requests, and `make test` fails where the page is not",
        "what the run gives, or where something that OpenStack's serves is not served here. Both have `keymaster encryption` in their pipelines, and neither",
        "has `s3_acl`. Martlet is configured to notify one target.", "",
        f"Of {len(served)} operations {counts[0]} are served here, {counts[1]} by OpenStack's.", "",
        "| word | means |", "|---|---|",
        "| works | the answer is a success, and where the effect can be seen it was: what was set is read back, a condition that does not hold is refused |",
        "| taken | the answer is a success; what the parameter does is not looked at |",
        "| ignored | the answer is a success, as if the parameter were not there |",
        "| another operation | as if there were no sub-resource: a listing or the object is the answer, or the bucket or the object is deleted or overwritten |",
        "| a code | the request is refused with it |", "",
        "Parameters are asked of operations that are served; the three `SSECustomer…` and `CopySourceSSECustomer…` at once. Not asked, as they are no",
        "operations of a store like these: " + ", ".join(f"{name} ({why})" for name, why in sorted(ELSEWHERE.items())) + ".", "",
        "## Operations", "", "| operation | Martlet | OpenStack's s3api |", "|---|---|---|",
        *(f"| {name} | {mine.outcome} | {other.outcome} |" for name, (mine, other) in served.items()), "",
        "## Parameters", "", "| operation | Martlet | OpenStack's s3api |", "|---|---|---|",
        *(f"| every operation: {name} | {everywhere(ours, name)} | {everywhere(theirs, name)} |" for name in EVERYWHERE),
        *(f"| {name} | {members(mine)} | {members(other)} |" for name, (mine, other) in served.items() if members(mine) + members(other) != "——")]
    return "\n".join([*lines, ""])


def everywhere(answers, name):
    """`ignored: 60`."""
    counts = Counter(served.members[name] for served in answers.values() if name in served.members)
    return "<br>".join(f"**{outcome}**: {count}" for outcome, count in sorted(counts.items()))


def members(served):
    """`works: A, B; NotImplemented: C`."""
    groups = defaultdict(list)
    for name, outcome in served.members.items():
        if name in EVERYWHERE:
            continue
        groups[outcome].append(name)
    order = [*WORDS, *sorted(groups.keys() - set(WORDS))]
    return "<br>".join(f"**{outcome}**: {', '.join(groups[outcome])}" for outcome in order if groups[outcome]) or "—"


def missing(ours, theirs):
    """What OpenStack's serves and ours does not, a line for each."""
    for name, other in theirs.items():
        mine = ours[name]
        if other.is_served and not mine.is_served:
            yield f"{name}: {mine.outcome}, there {other.outcome}"
        for member, outcome in other.members.items() if mine.is_served else ():
            if outcome == WORKS and mine.members[member] != WORKS:
                yield f"{name}({member}): {mine.members[member]}, there {outcome}"
