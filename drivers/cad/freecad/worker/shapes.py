"""How each kind of shape is made. Every maker takes the recipe's params and its input shapes."""
import math
import time

import FreeCAD
import Part

from bodies import FAILURES, INVALID_GEOMETRY, TINY, Refusal, V, edge_faces, valid
from files import read_brep, read_mesh_solid, refined

SMOOTH = math.cos(math.radians(1))  # faces that meet flatter than this have no edge to round


def wire(segments, at):
    edges = []
    for s in segments:
        a, b = at(s["from"]), at(s["to"])
        radius, sweep = s.get("radius", 0), s.get("sweep", 0)
        if radius == 0:
            edges.append(Part.LineSegment(a, b).toShape())
            continue
        center = s.get("center", [0, 0])
        start = math.atan2(s["from"][1] - center[1], s["from"][0] - center[0])
        on = lambda angle: at([center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle)])
        if abs(sweep) > 2 * math.pi - 1e-9:
            c = at(center)
            x = (on(0) - c).normalize()
            y = (on(math.pi / 2) - c).normalize()
            edges.append(Part.Edge(Part.Circle(c, x.cross(y), radius)))
        elif radius * (1 - math.cos(sweep / 2)) < 1e-7 and abs(sweep) < math.pi:
            edges.append(Part.LineSegment(a, b).toShape())  # nearer to its chord than two points are told apart
        else:
            edges.append(Part.Arc(a, on(start + sweep / 2), b).toShape())
    return Part.Wire(edges)


def area(p):
    origin, x, y = V(*p["origin"]), V(*p["x_axis"]), V(*p["y_axis"])
    at = lambda q: origin + x * q[0] + y * q[1]
    wires = [wire(loop, at) for loop in p["profile"]["loops"]]
    if len(wires) == 1:
        return Part.Face(wires[0])
    return Part.makeFace(wires, "Part::FaceMakerBullseye")


def extrude(p, _):
    return area(p).extrude(V(*p["vector"]))


def revolve(p, _):
    face, point, axis = area(p), V(*p["point"]), V(*p["axis"])
    # In a frame with the axis as z and the profile's plane as x-z, the profile
    # has to lie on one side.
    z = V(axis).normalize()
    normal = V(*p["x_axis"]).cross(V(*p["y_axis"]))
    x = normal.cross(z)
    frame = FreeCAD.Matrix(x.x, x.y, x.z, 0, normal.x, normal.y, normal.z, 0, z.x, z.y, z.z, 0, 0, 0, 0, 1)
    box = face.translated(-point).transformed(frame).BoundBox
    if box.XMin < -1e-6 and box.XMax > 1e-6:
        raise Refusal(INVALID_GEOMETRY, "axis_point", p["point"], "the axis passes through the profile",
                      "give an axis that the profile lies on one side of")
    return face.revolve(point, axis, math.degrees(p["angle"]))


def joined(shapes):
    """The union of shapes; those whose boxes are apart are only put together."""
    boxes = [s.BoundBox for s in shapes]
    apart = all(not a.intersect(b) for i, a in enumerate(boxes) for b in boxes[i + 1:]) if len(shapes) <= 200 else False
    if apart:
        return Part.Compound(shapes)
    return refined(shapes[0].fuse(shapes[1:]))


def subtract(_, inputs):
    return refined(inputs[0].cut(inputs[1:]))


def intersect(_, inputs):
    rest = inputs[0]
    for s in inputs[1:]:
        rest = rest.common(s)
    return refined(rest)


def pattern_linear(p, inputs):
    step = V(*p["direction"]).normalize() * p["spacing"]
    return joined([inputs[0].translated(step * i) for i in range(p["count"])])


def pattern_circular(p, inputs):
    gaps = p["count"] if abs(p["angle"]) > 2 * math.pi - 1e-9 else p["count"] - 1
    step = math.degrees(p["angle"]) / gaps
    return joined([inputs[0].rotated(V(*p["point"]), V(*p["axis"]), step * i) for i in range(p["count"])])


def transform(p, inputs):
    x, y, z, o = (V(*c) for c in p["matrix"])
    m = FreeCAD.Matrix(x.x, y.x, z.x, o.x, x.y, y.y, z.y, o.y, x.z, y.z, z.z, o.z, 0, 0, 0, 1)
    same = max(abs(x.Length - y.Length), abs(x.Length - z.Length)) < 1e-9 * x.Length
    square = max(abs(x.dot(y)), abs(x.dot(z)), abs(y.dot(z))) < 1e-9 * x.Length ** 2
    # A map that bends no circle keeps the surfaces what they are.
    return inputs[0].transformed(m, True) if same and square else inputs[0].transformGeometry(m)


def gap(box, p):
    return math.sqrt(sum(max(low - c, c - high, 0) ** 2 for low, c, high in (
        (box.XMin, p.x, box.XMax), (box.YMin, p.y, box.YMax), (box.ZMin, p.z, box.ZMax))))


def nearest(candidates, point, field, what):
    """The one of the candidates that is nearest to a point."""
    p = V(*point)
    vertex = Part.Vertex(p)
    best, second, found = math.inf, math.inf, None
    for least, c in sorted(((gap(c.BoundBox, p), c) for c in candidates), key=lambda t: t[0]):
        if least > second + 1e-7:
            break
        d = c.distToShape(vertex)[0]
        if d < best:
            best, second, found = d, best, c
        elif d < second:
            second = d
    if second - best < 1e-7:
        raise Refusal(INVALID_GEOMETRY, field, point, "%s: two %ss are as near to the point" % (field, what),
                      "give a point in the middle of one %s" % what)
    return found


def sharp_edges(shape):
    """The edges where two faces meet at an angle."""
    sharp = []
    for edge, faces in edge_faces(shape):
        if len(faces) != 2 or faces[0].isSame(faces[1]):
            continue
        middle = edge.valueAt((edge.FirstParameter + edge.LastParameter) / 2)
        a, b = (f.normalAt(*f.Surface.parameter(middle)) for f in faces)
        if a.dot(b) < SMOOTH:
            sharp.append(edge)
    return sharp


def picked(shape, points):
    edges = sharp_edges(shape)
    if not edges:
        raise Refusal(INVALID_GEOMETRY, "edges", None, "the solid has no sharp edge", "choose a solid with edges between its faces")
    if not points:
        return edges
    chosen = []
    for p in points:
        edge = nearest(edges, p, "edges", "edge")
        if not any(edge.isSame(e) for e in chosen):
            chosen.append(edge)
    return chosen


def largest(attempt, value):
    """What of a half, a quarter … of a value can be done, in the time that a hint is worth."""
    until = time.monotonic() + 1
    for _ in range(6):
        value /= 2
        if time.monotonic() > until:
            break
        if attempt(value) is not None:
            return "%.3g mm can be done" % value
    return "give less, or choose other edges"


def tried(attempt, field, value, message):
    """An operation on edges or faces, or why it can't be done."""
    result = attempt(value)
    if result is None:
        raise Refusal(INVALID_GEOMETRY, field, value, "%s: %s of %g mm can't be made here" % (field, message, value),
                      largest(attempt, value))
    return result


def attempting(operation):
    def attempt(value):
        try:
            result = operation(value)
        except FAILURES:
            return None
        return result if valid(result) and all(s.Volume > TINY for s in result.Solids) else None
    return attempt


def fillet(p, inputs):
    edges = picked(inputs[0], p.get("edges"))
    return tried(attempting(lambda r: inputs[0].makeFillet(r, edges)), "radius", p["radius"], "a fillet")


def chamfer(p, inputs):
    edges = picked(inputs[0], p.get("edges"))
    return tried(attempting(lambda d: inputs[0].makeChamfer(d, edges)), "distance", p["distance"], "a chamfer")


def shell(p, inputs):
    solid = inputs[0]
    if len(solid.Solids) != 1:
        raise Refusal(INVALID_GEOMETRY, "entity_id", None, "the solid has %d parts" % len(solid.Solids), "hollow out a solid of one part")
    solid = solid.Solids[0]
    faces = []
    for q in p.get("open_faces") or []:
        face = nearest(solid.Faces, q, "open_faces", "face")
        if not any(face.isSame(f) for f in faces):
            faces.append(face)

    def hollow(thickness):
        if faces:
            made = solid.makeThickness(faces, -thickness, 1e-3, False, False, 0, 2)
        else:
            inner = solid.makeOffsetShape(-thickness, 1e-3, join=2)
            made = solid.cut(inner) if valid(inner) else None
        # An inside turned inside out would add material, or leave all of it.
        return made if made is not None and TINY < made.Volume < solid.Volume - TINY else Part.Shape()

    return tried(attempting(hollow), "thickness", p["thickness"], "a wall")


def imported(p, _):
    return read_mesh_solid(p["file"]) if p["content"] == "mesh" else read_brep(p["file"])


MAKE = {
    "extrude": extrude,
    "revolve": revolve,
    "box": lambda p, _: Part.makeBox(*p["dimensions"], V(*p["position"])),
    "cylinder": lambda p, _: Part.makeCylinder(p["radius"], p["height"], V(*p["point"]), V(*p["axis"])),
    "sphere": lambda p, _: Part.makeSphere(p["radius"], V(*p["center"])),
    "cone": lambda p, _: (Part.makeCylinder(p["radius"], p["height"], V(*p["point"]), V(*p["axis"])) if p["radius"] == p["top"] else
                          Part.makeCone(p["radius"], p["top"], p["height"], V(*p["point"]), V(*p["axis"]))),
    "union": lambda _, inputs: joined(inputs),
    "subtract": subtract,
    "intersect": intersect,
    "pattern_linear": pattern_linear,
    "pattern_circular": pattern_circular,
    "mirror": lambda p, inputs: inputs[0].mirror(V(*p["point"]), V(*p["normal"])),
    "transform": transform,
    "fillet": fillet,
    "chamfer": chamfer,
    "shell": shell,
    "import": imported,
}
