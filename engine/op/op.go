// Package op is the registry of what swarmdeck can do: each operation once, with
// its name, its effect, the least role that may do it, its parameters, what it
// gives back and how that is told. Doors are made of it: the command line and
// with it scripts, help, completion and the palette; the tools of MCP. An
// operation does not know which door it was called by.
//
// An operation is made for one call: its parameters have their values within it.
package op

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
)

// Effect is what an operation does to the swarm.
type Effect string

// The effects. Who only reads is refused all but Reads.
const (
	Reads    Effect = "read"
	Writes   Effect = "write"
	Destroys Effect = "destructive"
)

// Confirm is how sure a cockpit has to be before it calls an operation.
type Confirm string

// The tiers.
const (
	ConfirmNone Confirm = "none"
	ConfirmAsk  Confirm = "confirm" // y or n; Enter means no
	ConfirmType Confirm = "type"    // type the name of what is affected
)

// Op is one operation, with room for the values of one call.
type Op struct {
	Name    string // the noun and the verb: "task cancel"
	Short   string // one line of help
	Long    string // "" is Short
	Example string // command lines, without the program's name
	Effect  Effect
	Role    Role    // the least that may; "" follows from the effect: Viewer or Operator
	Confirm Confirm // "" is ConfirmNone
	Undo    string  // the operation that takes it back; "" for none
	Done    string  // how Sentence begins: "cancelled"; "" for what only reads
	// ForAgents lets a process of an agent call it by a person's door: what an
	// agent may look at. All else it does by tools, where each call is judged.
	ForAgents bool
	// Looks says that it only reads, but has git look at files: that keeps their states
	// beside the data file, which a caller without an engine has to itself meanwhile.
	Looks bool
	// Streams says that values may come while it runs, see stream.
	Streams bool
	Tool    Tool // how it is offered to clients of MCP
	// Alone says that nothing is open when it runs: it calls Open if it needs to.
	Alone bool
	// Full shows a record with all its members rather than as a row of a list.
	Full   bool
	Params []*Param
	// Request is a pointer to what parameters fill members of: what its tags allow
	// bounds them, see package bound. nil is none.
	Request any
	// Filter is that of a list, which the door fills; nil for all else.
	Filter *core.Filter
	// Statuses are the values of a list's status; empty means any text.
	Statuses []string
	// Kinds names what knows the values of a list's kind, for completion.
	Kinds string
	// Agents names what knows those of a list, where they are not those of the fleet.
	Agents string
	// Check refuses mistaken parameters before anything is opened; nil checks
	// nothing more than each parameter does by itself. Where one of them has a call
	// change what others only read, it sets Effect and Role. It may give one that was
	// left out a value, and says so by Given.
	Check func(c *Call) error
	// Out is the type of the result: a record, or a core.Page of them.
	Out reflect.Type

	run func(ctx context.Context, c *Call) (any, error)
}

// Call is who calls an operation, and where.
type Call struct {
	*engine.Engine // open when Run is called; in Check nil, but where the door had it open before

	By     core.Caller
	Role   Role   // of the caller
	Data   string // the data file, where the caller may have it to itself; else ""
	Dir    string // base of relative paths; "" leaves them to the engine
	Path   string // PATH of a caller of this machine; "" is the engine's
	Remote bool   // the caller sits at another machine than the data file's
	Idle   bool   // nothing is worked on while it runs
	Brief  bool   // the caller shows a line of each record
	Trace  string // W3C trace context that the caller is in; "" for none
	Now    time.Time
	// Task and Session are what a calling agent works in: what it makes comes
	// from them unless it names others.
	Task, Session string
	// Keys sets a caller's idempotency keys apart from those of others; "" is for
	// callers who share theirs.
	Keys string
	// Activate, called in Check, has the engine do work while the operation runs.
	// It refuses where nothing runs.
	Activate func() error
	// Emit shows the values, a slice, that have come while the operation runs.
	Emit func(values any) error
	// Out takes what is no record: a whole log.
	Out io.Writer
	// Note tells the caller something beside the result, Progress what a call that
	// takes long waits for.
	Note, Progress func(text string)
	// Waits tells a caller who waits what has to be done first, on whatever form it has
	// its result.
	Waits func(text string)
	// Sign signs the statement of an answer with one of an operator's keys that is at
	// hand where the caller sits; nil can't.
	Sign func(statement string, keys []operator.Key) ([]byte, error)
	// Refused is told what the caller may not do from another machine.
	Refused func(err error)
	// Read gives what a value stands for: itself, a file after @, the caller's
	// input for -.
	Read func(field, value string) ([]byte, error)
	// Place makes a path absolute that the engine is to write to. It refuses one
	// from another machine, and the engine's own files.
	Place func(path *string) error
	// Stands tells where a store lies that the caller named: the data file, or the
	// file of this machine that stands for a database, with that.
	Stands func(name string) (path, database string, err error)
	// File opens a file that may be larger than a value; it is the caller's input
	// for -.
	File func(field, path string) (io.ReadCloser, error)
	// Open opens the engine for an operation that is Alone and settles who calls;
	// within a tenant when it says so.
	Open func(tenant bool) error
}

// traceID is the id of the trace that the caller is in.
func (c *Call) traceID() string {
	if id, _, is := core.ParseTraceparent(c.Trace); is {
		return id
	}
	return c.Trace
}

// Given says that the caller named a value of a parameter.
func (o *Op) Given(param string) bool {
	return slices.ContainsFunc(o.Params, func(p *Param) bool { return p.Name == param && p.Given })
}

// Hold refuses what the caller names by a parameter and does not reach. Run asks it too;
// a door that has a person asked asks it before.
func (o *Op) Hold(ctx context.Context, c *Call) error {
	for _, p := range o.Params {
		if err := c.mayName(ctx, strings.ReplaceAll(p.Name, "-", "_"), p.Use(), p.values()); err != nil {
			return err
		}
	}
	return nil
}

// Run carries the operation out. Its caller has filled and checked its
// parameters, and has held it against the role of who asks. The result is nil
// when there is none to tell; beside an error it is what was done all the same.
func (o *Op) Run(ctx context.Context, c *Call) (any, error) {
	if err := o.whole(ctx, c); err != nil {
		return nil, err
	}
	if err := o.Hold(ctx, c); err != nil {
		return nil, err
	}
	out, err := o.run(core.WithCaller(ctx, c.By), c)
	if e, is := out.(interface{ Value() any }); is {
		out = e.Value()
	}
	return out, err
}

// define makes an operation of its description and the function that carries it
// out, which finds the parameters' values where the description points.
//
//go:noinline
func define[Out any](o Op, run func(ctx context.Context, c *Call) (Out, error)) *Op {
	return o.made(reflect.TypeFor[Out](), func(ctx context.Context, c *Call) (any, error) { return run(ctx, c) })
}

// made is define without the type, so that it is there once: neither is inlined.
//
//go:noinline
func (o Op) made(out reflect.Type, run func(ctx context.Context, c *Call) (any, error)) *Op {
	if o.Effect == "" {
		o.Effect = Writes
	}
	if o.Role == "" {
		o.Role = Viewer
		if o.Effect != Reads {
			o.Role = Operator
		}
	}
	if o.Confirm == "" {
		o.Confirm = ConfirmNone
	}
	for _, p := range o.Params {
		p.bounded(o.Request)
	}
	o.Out = out
	o.run = func(ctx context.Context, c *Call) (any, error) {
		v, err := run(ctx, c)
		if failed := new(Failed); err != nil && (!errors.As(err, &failed) || v == nil || reflect.ValueOf(v).IsZero()) {
			return nil, err
		}
		return v, err
	}
	return &o
}

// Failed ends a call that was well made and did not come to what was wanted. Its
// result, where there is one, is told all the same. Err is nil when that says it
// all.
type Failed struct{ Err error }

func (e *Failed) Error() string {
	if e.Err == nil {
		return "failed"
	}
	return e.Err.Error()
}

func (e *Failed) Unwrap() error { return e.Err }

// list makes an operation that reads a page of records.
func list[T any](o Op, page func(ctx context.Context, c *Call, f core.Filter) (core.Page[T], error)) *Op {
	if o.Filter = new(core.Filter); o.Effect == "" {
		o.Effect = Reads
	}
	filter := o.Filter
	return define(o, func(ctx context.Context, c *Call) (core.Page[T], error) { return page(ctx, c, *filter) })
}

// picked makes a list of what a service lists whole: those of a page that a filter asks
// for by their traits.
func picked[T any](o Op, all func(c *Call) tenantList[T], traits func(c *Call, v T) core.Traits) *Op {
	return list(o, func(ctx context.Context, c *Call, f core.Filter) (core.Page[T], error) {
		found, err := all(c)(ctx, c.By.Tenant)
		return core.Pick(found, err, f, func(v T) core.Traits { return traits(c, v) })
	})
}

// listOf makes a list of what belongs to the record that its argument names.
func listOf[T any](o Op, id Param, page func(ctx context.Context, c *Call, id string, f core.Filter) (core.Page[T], error)) *Op {
	value := o.first(id)
	return list(o, func(ctx context.Context, c *Call, f core.Filter) (core.Page[T], error) {
		return page(ctx, c, *value, f)
	})
}

// show makes an operation that reads the one record that its argument names.
func show[Out any](o Op, id Param, get func(ctx context.Context, c *Call, id string) (Out, error)) *Op {
	o.Effect, o.Full = Reads, true
	return change(o, id, get)
}

// change makes an operation on the one record that its argument names.
func change[Out any](o Op, id Param, do func(ctx context.Context, c *Call, id string) (Out, error)) *Op {
	value := o.first(id)
	return define(o, func(ctx context.Context, c *Call) (Out, error) { return do(ctx, c, *value) })
}

// first puts an argument before all other parameters, and says where its value is.
func (o *Op) first(id Param) *string {
	id.Arg, id.Need, id.Into = true, true, new(string)
	o.Params = append([]*Param{&id}, o.Params...)
	return id.Into.(*string)
}

// changeWhy makes a change that takes a reason.
func changeWhy[Out any](o Op, id Param, do func(ctx context.Context, c *Call, id, reason string) (Out, error)) *Op {
	var reason string
	o.Params = append(o.Params, why(&reason))
	return change(o, id, func(ctx context.Context, c *Call, id string) (Out, error) { return do(ctx, c, id, reason) })
}

// The methods of services that operations are carried out by: one that reads a tenant's
// records, one that lists them all, one that somebody does something by, and one that takes
// their reason too.
type (
	tenantRead[In, Out any] func(ctx context.Context, tenant string, in In) (Out, error)
	tenantList[T any]       func(ctx context.Context, tenant string) ([]T, error)
	callerAct[In, Out any]  func(ctx context.Context, by core.Caller, in In) (Out, error)
	callerWhy[Out any]      func(ctx context.Context, by core.Caller, id, reason string) (Out, error)
)

// byTenant reads by a method of a service, in the caller's tenant.
func byTenant[In, Out any](method func(*Call) tenantRead[In, Out]) func(context.Context, *Call, In) (Out, error) {
	return func(ctx context.Context, c *Call, in In) (Out, error) { return method(c)(ctx, c.By.Tenant, in) }
}

// byCaller acts by a method of a service, in the caller's name.
func byCaller[In, Out any](method func(*Call) callerAct[In, Out]) func(context.Context, *Call, In) (Out, error) {
	return func(ctx context.Context, c *Call, in In) (Out, error) { return method(c)(ctx, c.By, in) }
}

// withReason is byCaller with the caller's reason.
func withReason[Out any](method func(*Call) callerWhy[Out]) func(context.Context, *Call, string, string) (Out, error) {
	return func(ctx context.Context, c *Call, id, reason string) (Out, error) {
		return method(c)(ctx, c.By, id, reason)
	}
}
