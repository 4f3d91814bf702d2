"""Geometry on FreeCAD's OpenCASCADE, behind JSON-RPC 2.0, one message to the line.

It holds bodies under the hash of their shape and nothing else: whoever started
it can build every body again from its recipe. Big content goes through files,
which the caller names. It ends with its standard input.

Arguments: the most memory in bytes, 0 for no limit, and the directories where
FreeCAD's modules may lie.
"""
import ctypes
import json
import os
import resource
import signal
import sys
import traceback

# OpenCASCADE chatters on descriptor 1: the protocol moves away from it first.
answers = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if int(sys.argv[1]) > 0:
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
sys.path.extend(sys.argv[2:])

import FreeCAD
import Part

import files
import shapes
from bodies import (BROKEN, FAILURES, IMPORT_FAILED, INSUFFICIENT_MEMORY, INVALID_GEOMETRY, TOPOLOGY_ERROR, Body, Refusal, V,
                    facts, valid, whole)

TOUCHING = 1e-6  # mm³: two bodies that share no more only touch

bodies = {}


def body(name):
    if name not in bodies:
        raise KeyError("body %s was not built" % name[:12])
    return bodies[name]


def hello(_):
    return {"freecad": ".".join(FreeCAD.Version()[:3]), "opencascade": Part.OCC_VERSION, "python": sys.version.split()[0]}


def build(p):
    if p["hash"] in bodies:
        return bodies[p["hash"]].facts
    op, inputs = p["op"], [body(h) for h in p["inputs"]]
    params = dict(p["params"], **p["content"])
    try:
        # OpenCASCADE may widen the tolerances of what it works on: a copy, so
        # that no body depends on what else was made of its inputs.
        shape = whole(shapes.MAKE[op](params, [b.shape.copy() for b in inputs]))
    except FAILURES as e:
        raise Refusal(TOPOLOGY_ERROR if inputs else INVALID_GEOMETRY, "", None, "%s can't be made: %s" % (op, str(e).strip() or type(e).__name__),
                      "change the sizes or the position a little")
    if not shape.Solids:
        raise Refusal(TOPOLOGY_ERROR, "entity_ids", None, "%s leaves nothing" % op, "choose solids of which something remains")
    if not valid(shape):
        raise Refusal(TOPOLOGY_ERROR, "", None, "%s makes a solid that is not valid" % op, "change the sizes or the position a little")
    made = Body(shape, max([p["tolerance"]] + [b.tolerance for b in inputs]))
    if op == "transform":
        # Where circles became ellipses, OpenCASCADE integrates to some 1e-4 only.
        x, y, z, o = (V(*c) for c in params["matrix"])
        c = inputs[0].facts["center_of_mass"]
        made.facts["volume"] = inputs[0].facts["volume"] * abs(x.dot(y.cross(z)))
        made.facts["center_of_mass"] = list(x * c[0] + y * c[1] + z * c[2] + o)
    bodies[p["hash"]] = made
    return made.facts


def drop(p):
    bodies.pop(p["hash"], None)


def measure(p):
    """The facts of a body and its inertia about the centre at density 1, in mm⁵."""
    b = body(p["hash"])
    center = b.facts["center_of_mass"]
    inertia = [[0.0] * 3 for _ in range(3)]
    for s in b.shape.Solids:
        m, v = s.MatrixOfInertia, s.Volume
        d = [c - o for c, o in zip(s.CenterOfMass, center)]
        square = sum(x * x for x in d)
        own = [[m.A11, m.A12, m.A13], [m.A21, m.A22, m.A23], [m.A31, m.A32, m.A33]]
        for i in range(3):
            for j in range(3):
                inertia[i][j] += own[i][j] + v * ((square if i == j else 0) - d[i] * d[j])
    return {"facts": b.facts, "inertia": inertia}


def overlap(p):
    a, b = body(p["a"]).shape.copy(), body(p["b"]).shape.copy()
    if not a.BoundBox.intersect(b.BoundBox):
        return None
    common = a.common(b)
    if common.isNull() or sum(s.Volume for s in common.Solids) <= TOUCHING:
        return None
    shared = facts(common, 0)
    return {"volume": shared["volume"], "bounding_box": shared["bounding_box"]}


def distance(p):
    """The smallest gap between two bodies in mm, 0 when they touch or overlap."""
    a, b = body(p["a"]).shape.copy(), body(p["b"]).shape.copy()
    if any(x.isInside(y.Vertexes[0].Point, 1e-7, True) for x, y in ((a, b), (b, a))):
        return {"distance": 0}
    return {"distance": a.distToShape(b)[0]}


def mesh(p):
    """Writes the facets around bodies: where they touch they are one."""
    all = [body(h).shape for h in p["hashes"]]
    shape = all[0]
    if len(all) > 1:
        try:
            shape = whole(shapes.joined([s.copy() for s in all]))
        except FAILURES:
            shape = None
        if shape is None or not valid(shape):
            raise Refusal(TOPOLOGY_ERROR, "entity_ids", len(all), "these solids can't be joined to one surface",
                          "write fewer of them to the file, or a format that keeps parts apart, such as 3MF or STEP")
    return files.write_mesh(shape, p["linear"], p["angular"], p["file"])


def export(p):
    files.export(p["file"], p["format"], p["schema"], [(part["name"], body(part["hash"]).shape) for part in p["parts"]])


def read(p):
    """Reads the solids of a file into files of their own, beside it."""
    found = []
    for i, (name, solid) in enumerate(files.read_solids(p["file"], p["format"])):
        shape = whole(solid)
        if not valid(shape):
            raise Refusal(IMPORT_FAILED, "file_path", name, "the solid %s of the file is not valid" % name, "repair it where it was made")
        path = "%s.%d.brep" % (p["file"], i)
        shape.exportBrep(path)
        found.append({"name": name, "file": path})
    return {"solids": found}


METHODS = {
    "hello": hello,
    "build": build,
    "drop": drop,
    "measure": measure,
    "mesh": mesh,
    "overlap": overlap,
    "distance": distance,
    "export": export,
    "import": read,
}


def error(code, message, data):
    return {"error": {"code": code, "message": message, "data": data}}


def answer(method, params):
    try:
        return {"result": METHODS[method](params)}
    except Refusal as e:
        return error(e.code, str(e), e.data)
    except MemoryError:
        return error(INSUFFICIENT_MEMORY, "the operation needs more memory than the kernel may have", {"suggestion": "use fewer copies, or simpler solids"})
    except Exception as e:
        traceback.print_exc()
        return error(BROKEN, "%s: %s" % (type(e).__name__, e), {})


def answer_apart(method, params):
    """The same in a process of its own: a file may be made to crash its reader."""
    said = params["file"] + ".json"
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it dies with us
            with open(said, "w") as f:
                json.dump(answer(method, params), f)
            os._exit(0)
        finally:
            os._exit(2)
    if os.waitpid(child, 0)[1] != 0:
        return error(IMPORT_FAILED, "the file can't be read as %s: its reader gave up" % params["format"],
                     {"field": "file_path", "suggestion": "write the file anew, or as STEP"})
    with open(said) as f:
        return json.load(f)


def main():
    for line in sys.stdin.buffer:
        request = json.loads(line)
        method, params = request["method"], request.get("params") or {}
        reply = (answer_apart if method == "import" else answer)(method, params)
        if "id" in request:
            answers.write(json.dumps(dict(reply, jsonrpc="2.0", id=request["id"]), allow_nan=False).encode() + b"\n")
        if method == "hello":
            # What the first mesh and the first file need takes its time: now
            # nobody waits for it.
            import Import
            import MeshPart


main()
