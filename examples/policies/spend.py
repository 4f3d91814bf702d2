#!/usr/bin/python3 -IS
"""A policy that is a program: small payments pass, large ones ask a person,
and one to an unknown receiver ends the run. It stays (--serve): one JSON
document per line in, one answer per line out. Run once it answers one line.
"""
import json
import sys

KNOWN = {"acme", "globex"}


def decide(ask):
    action = ask["action"]
    if action["tool"] != "pay":
        return "hitl", "spend.other", 0.5, "Only payments are known here."
    args = action.get("args", {})
    if args.get("to") not in KNOWN:
        return "abort", "spend.receiver", 1, "The receiver is on no list: the run ends."
    amount = args.get("amount")
    if isinstance(amount, (int, float)) and 0 < amount <= 100:
        return "approve", "spend.small", 0.99, "A small payment to a known receiver."
    return "hitl", "spend.large", 0.9, "A person looks at payments above 100."


for line in sys.stdin:
    decision, code, confidence, why = decide(json.loads(line))
    print(json.dumps({"decision": decision, "reason_code": code, "confidence": confidence, "rationale": why}), flush=True)
