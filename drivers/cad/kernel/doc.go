// Package kernel models watertight solids: primitives, extrusion, revolution,
// booleans, transforms, mass properties and meshes, in millimetres.
//
// The geometry is Manifold's WebAssembly build, run by wazero inside this
// process: nothing to install, no cgo. An Engine holds the compiled code and
// costs nothing until the first Open. Each Kernel that it opens is an instance
// with a memory of its own, so one workspace can neither see nor harm another.
//
// A Kernel and its Solids belong to one goroutine at a time. An Engine may be
// shared by all.
//
// Solids are meshes: a curved surface is made of flat facets whose distance
// from the true surface is at most the tolerance given where it was made, and
// Solid.Tolerance reports the largest one that went into a solid. Numbers are what
// env.DecodeRecipe lets through: finite, in range, directions not zero. What
// follows from them alone, such as too many chords, is refused here. A call that exhausts the
// memory limit or fails inside the geometry kills its Kernel, and only that one:
// every later call says why (ErrDead), and the owner opens another and repeats its
// operations. A context is looked at before each call into the geometry; whoever
// needs a hard deadline runs the Kernel in a process that can be killed.
//
// There is no fillet, chamfer or shell on edges of a solid, and no exact curved
// surface: a caller that needs them needs another kernel.
package kernel
