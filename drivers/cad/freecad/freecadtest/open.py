"""Opens the files that it is given as a person's FreeCAD would, and tells what it found, as JSON.

Nothing of the program that wrote them takes part. FreeCAD of this age reads no 3MF: that is read by lib3mf, the
format's own library, where it is installed, and by Python's zip and XML; FreeCAD makes solids of what they find.
"""
import ctypes
import json
import os
import sys
import traceback
import zipfile
import xml.etree.ElementTree

answer = os.dup(1)
os.dup2(2, 1)  # what FreeCAD says is no part of the answer
paths, files = json.loads(sys.argv[1]), sys.argv[2:]
sys.path.extend(paths)
for base in ("/usr/share/freecad", "/usr/lib/freecad"):
    sys.path += [base + "/Mod/Draft", base + "/Ext"]
import FreeCAD
import Mesh
import Part

NEAR = 1e-7  # mm: corners that are farther apart are two


def solid(name, shape):
    return {"name": name, "closed": all(s.isClosed() for s in shape.Shells), "valid": shape.isValid(), "volume": shape.Volume}


def surface(name, mesh):
    """The solids within a mesh, less the voids in them, as one."""
    shape = Part.Shape()
    shape.makeShapeFromMesh(mesh.Topology, NEAR)
    solids = sorted((Part.Solid(s) for s in shape.Shells), key=lambda s: -s.BoundBox.DiagonalLength)
    outer, voids = [], []
    for s in solids:
        inside = sum(o.isInside(s.Vertexes[0].Point, NEAR, False) for o in solids if o is not s)
        (voids if inside % 2 else outer).append(s)
    out = solid(name, Part.Compound(solids))
    out["volume"] = sum(abs(s.Volume) for s in outer) - sum(abs(s.Volume) for s in voids)
    out["mesh"] = {
        "solid": mesh.isSolid(), "non_manifold": mesh.hasNonManifolds(), "self_crossing": mesh.hasSelfIntersections(),
        "turned": mesh.hasNonUniformOrientedFacets(), "facets": mesh.CountFacets,
    }
    return out


def step(path):
    import Import

    document = FreeCAD.newDocument("step", hidden=True, temp=True)
    Import.insert(path, document.Name, useLinkGroup=False)
    found = [o for o in document.Objects if o.isDerivedFrom("Part::Feature") and o.Shape.Solids]
    return {"solids": [solid(o.Label, s) for o in found for s in o.Shape.Solids]}


def stl(path):
    return {"solids": [surface("", Mesh.Mesh(path))]}


CORE = "{http://schemas.microsoft.com/3dmanufacturing/core/2015/02}"


def threemf(path):
    with zipfile.ZipFile(path) as package:
        model = xml.etree.ElementTree.fromstring(package.read("3D/3dmodel.model"))
    built = {i.get("objectid") for i in model.iter(CORE + "item")}
    solids = []
    for o in model.iter(CORE + "object"):
        if o.get("id") not in built:
            continue
        points = [tuple(float(v.get(c)) for c in "xyz") for v in o.iter(CORE + "vertex")]
        facets = [[points[int(t.get(c))] for c in ("v1", "v2", "v3")] for t in o.iter(CORE + "triangle")]
        solids.append(surface(o.get("name"), Mesh.Mesh(facets)))
    return {"unit": model.get("unit"), "solids": solids, "library": library(path)}


def library(path):
    """What lib3mf says of each object: its name, and whether it is a closed surface with its outside out."""
    try:
        lib = ctypes.CDLL("lib3MF.so.1")
    except OSError:
        return None

    def call(name, *args):
        if getattr(lib, "lib3mf_" + name)(*args) != 0:
            raise RuntimeError("lib3mf: %s failed" % name)

    def made(kind, name, *args):
        out = kind()
        call(name, *args, ctypes.byref(out))
        return out

    handle = ctypes.c_void_p
    model = made(handle, "createmodel")
    reader = made(handle, "model_queryreader", model, b"3mf")
    call("reader_setstrictmodeactive", reader, True)
    call("reader_readfromfileutf8", reader, path.encode())
    objects = made(handle, "model_getmeshobjects", model)
    found = []
    while made(ctypes.c_bool, "resourceiterator_movenext", objects).value:
        o = made(handle, "resourceiterator_getcurrent", objects)
        name = ctypes.create_string_buffer(1000)
        call("object_getnameutf8", o, name, 1000, ctypes.byref(ctypes.c_uint32()))
        found.append({"name": name.value.decode(), "manifold": made(ctypes.c_bool, "meshobject_ismanifoldandoriented", o).value,
                      "facets": made(ctypes.c_uint32, "meshobject_gettrianglecount", o).value})
    return {"warnings": made(ctypes.c_uint32, "reader_getwarningcount", reader).value, "objects": found}


def svg(path):
    import importSVG

    document = FreeCAD.newDocument("drawing", hidden=True, temp=True)
    importSVG.insert(path, document.Name)
    box, wires = FreeCAD.BoundBox(), [w for o in document.Objects for w in o.Shape.Wires]
    for w in wires:
        box.add(w.BoundBox)
    return {"wires": len(wires), "closed": sum(w.isClosed() for w in wires), "edges": sum(len(w.Edges) for w in wires),
            "length": sum(w.Length for w in wires), "box": [box.XMin, box.YMin, box.XMax, box.YMax],
            "valid": all(w.isValid() for w in wires)}


READ = {".step": step, ".stl": stl, ".3mf": threemf, ".svg": svg}

try:
    found = {os.path.basename(f): READ[os.path.splitext(f)[1]](f) for f in files}
    os.write(answer, json.dumps(found).encode())
except BaseException:
    os.write(2, traceback.format_exc().encode())  # FreeCAD has sys.stderr
    os._exit(1)
os._exit(0)  # FreeCAD's own end is not always a good one
