"""Bodies, what is told of them, and how a request is refused."""
import FreeCAD
import Part

V = FreeCAD.Vector

INVALID_GEOMETRY, TOPOLOGY_ERROR = -32603, -32006
IMPORT_FAILED, INSUFFICIENT_MEMORY = -32010, -32011
BROKEN = -32000  # a failure that no other parameters would have avoided

TINY = 1e-9  # mm³: what is smaller is no solid

FAILURES = (RuntimeError, ValueError)  # of an operation that can't be done; OpenCASCADE's are of the first kind


class Refusal(Exception):
    """What the caller can change: a code, a field, its value, what is wrong and what would be right."""

    def __init__(self, code, field, value, message, suggestion):
        super().__init__(message)
        self.code, self.data = code, {"field": field, "provided_value": value, "suggestion": suggestion}


class Body:
    """A shape with its facts; tolerance is how far its facets stay from the true surface in mm."""

    def __init__(self, shape, tolerance):
        self.shape, self.tolerance = shape, tolerance
        self.facts = facts(shape, tolerance)


def whole(shape):
    """The solids of a shape as one shape, turned the right way out."""
    solids = []
    for s in shape.Solids:
        volume = s.Volume
        if abs(volume) > TINY:
            solids.append(s if volume > 0 else s.reversed())
    return solids[0] if len(solids) == 1 else Part.Compound(solids)


def valid(shape):
    try:
        return not shape.isNull() and bool(shape.Solids) and shape.isValid()
    except FAILURES:
        return False


def edge_faces(shape):
    """Each real edge of a shape with the faces at it; a seam has the same face twice."""
    found = {}
    for face in shape.Faces:
        for edge in face.Edges:
            if edge.Degenerated:
                continue
            bucket = found.setdefault(edge.hashCode(), [])
            entry = next((e for e in bucket if e[0].isSame(edge)), None)
            if entry is None:
                entry = (edge, [])
                bucket.append(entry)
            entry[1].append(face)
            if edge.isSeam(face):
                entry[1].append(face)
    return [entry for bucket in found.values() for entry in bucket]


def facts(shape, tolerance):
    solids = shape.Solids
    volumes = [s.Volume for s in solids]
    total = sum(volumes)
    center = V()
    for s, v in zip(solids, volumes):
        center = center + s.CenterOfMass * (v / total)
    plain = ("Part::GeomPlane", "Part::GeomCylinder", "Part::GeomCone", "Part::GeomSphere")  # whose boxes are tight
    faces = shape.Faces
    simple = all(f.Surface.TypeId in plain for f in faces)
    box = shape.BoundBox if simple else shape.optimalBoundingBox()
    edges = [edge_faces(s) for s in solids]
    closed = all(shell.isClosed() for s in solids for shell in s.Shells)
    return {
        "volume": total,
        "surface_area": shape.Area,
        "center_of_mass": list(center),
        "bounding_box": bounds(box),
        "topology": {
            "face_count": len(faces),
            "edge_count": sum(len(e) for e in edges),
            "vertex_count": len(shape.Vertexes),
            "is_closed": closed,
            "is_manifold": closed and all(len(f) == 2 for e in edges for _, f in e),
        },
        "tolerance": tolerance,
    }


def bounds(box):
    return {"min": [box.XMin, box.YMin, box.ZMin], "max": [box.XMax, box.YMax, box.ZMax]}
