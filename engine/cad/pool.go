package cad

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Pool hands out the processes that compute geometry. A process serves one
// tenant with one kernel, so that no two tenants ever share one.
type Pool interface {
	// Lease gives the worker that has the site's workspace loaded when there is
	// one, else another of its tenant and kernel, for the caller alone until
	// Release. It waits while all that may run are leased, until ctx ends. A
	// kernel that is not installed is an error with core.Unavailable, one that
	// nobody knows core.InvalidInput.
	Lease(ctx context.Context, at Site) (Worker, error)
	// Kernels tells which kernels there are, the default first.
	Kernels() []Kernel
}

// Site says what a worker is wanted for.
type Site struct {
	Tenant    string
	Workspace string // that the operation is about
	Kernel    string // embedded or occt; "" is the pool's default
	// Directory is where the workspace's files lie, for an operation that reads or
	// writes some; it is there. "" for one that does not.
	Directory string
}

// Kernel is one way to compute geometry.
type Kernel struct {
	Name    string `json:"kernel"`
	Version string `json:"kernel_version,omitempty"` // "" until it has run once
	Why     string `json:"why,omitempty"`            // why it can't be used; "" if it can
}

// Worker is one leased process: `swarmdeck cad env --journal`. Any error but a
// *Fault means that the process is lost: it will have been ended by the time
// the worker is released, and the next lease gives a fresh one.
type Worker interface {
	// Seq is the newest journal entry that the process has of a workspace; 0 when
	// it does not have it.
	Seq(workspace string) int
	// Load brings a workspace up to its next entries (method workspace.load);
	// a From of 1 replaces what it had.
	Load(ctx context.Context, l Load) error
	// Unload makes it forget a workspace (method workspace.unload).
	Unload(ctx context.Context, workspace string) error
	// Call carries out one operation. When ctx ends before, the operation is
	// cancelled and, if that does not help soon, the process is ended; the error
	// then wraps ctx's.
	Call(ctx context.Context, c Call) (Reply, error)
	// Release gives the worker back. It must not be used after that.
	Release()
}

// Load is the part of a journal that a worker lacks.
type Load struct {
	WorkspaceID string        `json:"workspace_id"`
	From        int           `json:"from"` // seq of the first entry
	Entries     []model.Entry `json:"entries"`
	Directory   string        `json:"directory,omitempty"` // absolute; where its files lie
}

// Call is one operation. Params has everything: workspace_id, agent_id and
// deadline_ms too.
type Call struct {
	Method string
	Params core.Raw
	// Progress is told how far a long operation is, 0-100, from another
	// goroutine; nil is not told.
	Progress func(percent float64, stage string)
}

// Reply is an operation that succeeded.
type Reply struct {
	Data    core.Raw      // what it answers, a JSON object
	Entry   *model.Entry  // what it changed; nil when nothing
	Elapsed time.Duration // as the worker measured it
}

// Fault is an operation that the CAD environment refused: nothing has changed.
type Fault struct {
	Code        int    // of JSON-RPC, such as -32001
	Name        string // ENTITY_NOT_FOUND
	Message     string
	Field       string
	Value       core.Raw
	Suggestion  string
	Recoverable bool
}

func (f *Fault) Error() string { return fmt.Sprintf("%s: %s", f.Name, f.Message) }
