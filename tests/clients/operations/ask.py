"""Asks one system for every operation, and for each parameter of those that it serves."""

from dataclasses import dataclass, field

from botocore import xform_name
from botocore.exceptions import ClientError

from clients.operations import effects
from clients.operations.ground import Ground
from clients.operations.values import NOT_ASKED, base, with_member

# Not a server's: an answer to another service, and what is for buckets of another kind and begins at an address of AWS's own.
ELSEWHERE = {"WriteGetObjectResponse": "is spoken to S3 Object Lambda", "CreateSession": "is for directory buckets",
             "ListDirectoryBuckets": "is for directory buckets", "RenameObject": "is for directory buckets"}

WORKS, TAKEN, IGNORED, ANOTHER = "works", "taken", "ignored", "another operation"


@dataclass
class Served:
    """What became of an operation, and of its parameters: one of the words, or a code."""

    outcome: str
    members: dict = field(default_factory=dict)

    @property
    def is_served(self):
        return self.outcome == WORKS


def ask_all(system):
    """{operation: Served}."""
    ground = Ground(system)
    model = ground.s3.meta.service_model
    return {name: ask(ground, name, model.operation_model(name).input_shape) for name in sorted(model.operation_names) if name not in ELSEWHERE}


def ask(ground, operation, shape):
    served = Served(outcome(ground, operation, None, shape))
    if served.is_served and shape:
        asked = base(ground, operation, shape).keys() - {"ACL"}  # with the operation itself
        for member in shape.members:
            if member not in NOT_ASKED and member not in asked:
                served.members[member] = outcome(ground, operation, member, shape)
    return served


def outcome(ground, operation, member, shape):
    """What becomes of one request."""
    arguments = base(ground, operation, shape) if shape else {}
    if member is not None:
        arguments = with_member(ground, operation, member, shape, arguments)
    try:
        answer = getattr(ground.s3, xform_name(operation))(**arguments)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if effects.is_body(ground):  # in which the client finds nothing that it knows
            return ANOTHER
        return WORKS if member and effects.is_due_refusal(member, code) else code
    if operation == "DeleteObjects" and "Errors" in answer:
        code = answer["Errors"][0]["Code"]
        return WORKS if member and effects.is_due_refusal(member, code) else code
    if effects.is_another(ground, operation, arguments, answer):
        return ANOTHER
    if member is None:
        kept = effects.is_kept(ground, operation, arguments)
        return IGNORED if kept is False else WORKS
    seen = effects.seen(ground, operation, member, arguments, answer)
    return {True: WORKS, False: IGNORED, None: TAKEN}[seen]
