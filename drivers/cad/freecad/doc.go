// Package freecad fills the CAD environment's Kernel with exact geometry:
// OpenCASCADE, by the Python modules of a FreeCAD that is installed here.
//
// Each kernel is a child process that holds bodies and nothing else. It is
// started with a private directory, an environment of its own and a limit of
// memory, and it ends with this process, whatever ends that. Whatever goes
// wrong in it (a call that takes too long, a crash, an answer that is none)
// loses that kernel only: it is killed, every later call says why, and its
// owner opens another and builds what it needs again.
//
// A body does not depend on what else was made of its inputs, and the same
// recipes give the same file (but for IGES, whose names come in any order). A
// file to read may be made to crash its reader: that runs in a process of its
// own.
//
// A transform that stretches circles to ellipses keeps the exact surfaces, but
// of what is made of such a solid OpenCASCADE measures the volume to some 1e-4
// only.
package freecad
