// Package conformance holds the one suite that every kernel of the CAD
// environment passes: its tests speak JSON-RPC with an environment on each
// kernel, compare what comes back with exact values within what that kernel
// declares, and with what the other kernels answer: the same members, the same
// refusals. It has no code but tests.
package conformance
