package freecad

import "swarmdeck/drivers/cad/env"

// PID is the process of a kernel's worker.
func PID(k env.Kernel) int { return k.(*Kernel).p.child.PID() }
