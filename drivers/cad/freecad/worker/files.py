"""Meshes and files: what bodies are written to and read from."""
import array
import itertools
import re

import FreeCAD
import Part

from bodies import FAILURES, IMPORT_FAILED, INVALID_GEOMETRY, Refusal, V, valid

MOST_TRIANGLES = 2_000_000  # of a mesh that is written
MOST_FACETS = 20_000  # of a mesh that is read: each becomes a face
MOST_JOINED = 4_000  # of those, joined to whole faces where they are flat

SCHEMAS = {"AP203": 3, "AP214": 4, "AP242": 5}


def refined(shape):
    """Faces and edges that are cut up without need made whole, where that keeps the shape valid."""
    try:
        simple = shape.removeSplitter()
        if valid(simple):
            return simple
    except FAILURES:
        pass
    return shape


def write_mesh(shape, linear, angular, path):
    """Writes the facets of a body: three counts, the corners, the triangles, and each triangle's face."""
    import MeshPart

    points, triangles, faces, first_face = array.array("d"), array.array("I"), array.array("I"), 0
    # Solids are apart even where they touch. Facets come in single precision:
    # near the origin, where it is finest.
    for solid in shape.Solids:
        center = solid.BoundBox.Center
        near = solid.copy(True, False).translated(-center)
        mesh = MeshPart.meshFromShape(Shape=near, LinearDeflection=linear, AngularDeflection=angular, Relative=False, Segments=True)
        if mesh.CountFacets == 0:  # what OpenCASCADE makes when its memory runs out
            raise Refusal(INVALID_GEOMETRY, "deflection", linear, "a deflection of %g mm can't be meshed" % linear, "give a coarser deflection")
        if len(triangles) // 3 + mesh.CountFacets > MOST_TRIANGLES:
            raise Refusal(INVALID_GEOMETRY, "deflection", linear, "a deflection of %g mm makes more than %d triangles" % (linear, MOST_TRIANGLES),
                          "give a coarser deflection")
        corners, facets = mesh.Topology
        first = len(points) // 3
        for p in corners:
            points.extend((p.x + center.x, p.y + center.y, p.z + center.z))
        face = array.array("I", bytes(4 * len(facets)))
        for i in range(mesh.countSegments()):
            for j in mesh.getSegment(i):
                face[j] = first_face + i
        first_face += mesh.countSegments()
        for f in facets:
            triangles.extend((first + f[0], first + f[1], first + f[2]))
        faces.extend(face)
    with open(path, "wb") as f:
        array.array("I", [len(points) // 3, len(triangles) // 3, len(faces)]).tofile(f)
        points.tofile(f)
        triangles.tofile(f)
        faces.tofile(f)
    return {"vertices": len(points) // 3, "triangles": len(triangles) // 3}


def read_mesh(path):
    with open(path, "rb") as f:
        counts, points, corners = array.array("I"), array.array("d"), array.array("I")
        counts.fromfile(f, 3)
        points.fromfile(f, 3 * counts[0])
        corners.fromfile(f, 3 * counts[1])
    each = lambda flat: list(zip(flat[0::3], flat[1::3], flat[2::3]))
    return [V(*p) for p in each(points)], each(corners)


def read_mesh_solid(path):
    """A closed surface of triangles as a solid, its flat faces whole while they are not too many."""
    points, triangles = read_mesh(path)
    if len(triangles) > MOST_FACETS:
        raise Refusal(INVALID_GEOMETRY, "file_path", len(triangles), "%d triangles are too many for exact faces" % len(triangles),
                      "import at most %d triangles, or start the environment with --kernel embedded" % MOST_FACETS)
    surface = Part.Shape()
    surface.makeShapeFromMesh((points, triangles), 1e-7)
    solids = [Part.Solid(s) for s in surface.Shells]
    voids = [s.reversed() for s in solids if s.Volume < 0]
    made = Part.Compound([s for s in solids if s.Volume > 0])
    if voids:
        made = made.cut(voids)
    return refined(made) if len(triangles) <= MOST_JOINED else made


def read_brep(path):
    shape = Part.Shape()
    try:
        shape.importBrep(path)
    except FAILURES:
        return Part.Shape()
    return shape


def export(path, form, schema, parts):
    """Writes (name, shape) pairs. STEP and IGES carry the names; nothing tells when a file was written."""
    if form == "BREP":
        (parts[0][1] if len(parts) == 1 else Part.Compound([s for _, s in parts])).exportBrep(path)
        return
    import Import

    if form == "STEP":
        Part.setStaticValue("write.step.schema", SCHEMAS[schema])
    else:
        Part.setStaticValue("write.iges.brep.mode", 1)  # solids, not loose faces
    document = FreeCAD.newDocument("Assembly", hidden=True, temp=True)
    try:
        objects = []
        for name, shape in parts:
            o = document.addObject("Part::Feature", "Part")
            o.Shape, o.Label = shape, name
            objects.append(o)
        Import.export(objects, path)
    finally:
        FreeCAD.closeDocument(document.Name)
    with open(path, "rb") as f:
        text = f.read()
    if form == "STEP":
        text = re.sub(rb"FILE_NAME\(.*?\);", b"FILE_NAME('','',(''),(''),'','swarmdeck','');", text, count=1, flags=re.S)
        number = itertools.count(1)  # instead of how many were written before
        text = re.sub(rb"(NEXT_ASSEMBLY_USAGE_OCCURRENCE\(')\d+'", lambda m: b"%s%d'" % (m[1], next(number)), text)
    else:
        text = re.sub(rb"15H\d{8}\.\d{6}", b"15H20000101.000000", text, count=2)
    with open(path, "wb") as f:
        f.write(text)


def parts_of(path):
    """The named shapes of a STEP or IGES file, where they stand in its assembly."""
    import Import

    document = FreeCAD.newDocument("Assembly", hidden=True, temp=True)
    try:
        Import.insert(path, document.Name, useLinkGroup=False)
        found = []
        for o in document.Objects:
            if o.isDerivedFrom("Part::Feature") and not o.Shape.isNull():
                shape = o.Shape.copy()
                shape.Placement = o.getGlobalPlacement()
                found.append((o.Label, shape))
        return found
    finally:
        FreeCAD.closeDocument(document.Name)


def sewn(shape):
    """The solids that loose faces enclose."""
    shape = shape.copy()
    shape.sewShape()
    return [Part.Solid(s) for s in shape.Shells if s.isClosed()]


def read_solids(path, form):
    """The solids of a file as (name, solid) pairs."""
    try:
        if form == "BREP":
            found = [("solid", read_brep(path))]
        else:
            try:
                found = parts_of(path)
            except FAILURES + (OSError,):
                found = []
            if not found:
                found = [("solid", Part.read(path))]
        solids = [(name, s) for name, shape in found for s in (shape.Solids or sewn(shape))]
    except FAILURES + (OSError,):
        solids = []
    if not solids:
        raise Refusal(IMPORT_FAILED, "file_path", None, "no solid can be read from the file as %s" % form,
                      "choose a %s file with at least one closed solid" % form)
    taken = set()
    return [(unique(name, taken), s) for name, s in solids]


def unique(name, taken):
    """A name that is not taken yet: the name, or the name with _2, _3 …"""
    candidates = itertools.chain([name], ("%s_%d" % (name, i) for i in itertools.count(2)))
    name = next(c for c in candidates if c not in taken)
    taken.add(name)
    return name
