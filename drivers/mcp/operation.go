package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
)

var agentName = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

// absolute is a path of a client: it has no directory that others are below.
var absolute = core.Pattern(`^/`)

// operations are the tools that the registry's operations are.
func operations() (tools []tool) {
	for _, noun := range op.Nouns() {
		for i, o := range noun.Ops() {
			if o.Tool.Name != "" {
				tools = append(tools, operation(o, func() *op.Op { return noun.Ops()[i] }))
			}
		}
	}
	return tools
}

// operation makes a tool of an operation; make gives one for each call.
func operation(o *op.Op, make func() *op.Op) tool {
	shape := shapeOf(o)
	t := tool{
		name: o.Tool.Name, title: strings.ReplaceAll(strings.ToUpper(o.Tool.Name[:1])+o.Tool.Name[1:], "_", " "), about: cmp.Or(o.Tool.About, o.Short+"."),
		effect: o.Effect, role: o.Role, params: params(o), out: orError(shape.schema(o)),
	}
	ready := func(c *call, args core.Raw) (*op.Op, *op.Call, wait, error) {
		o, w := make(), wait(0)
		err := fill(o, t.params, args, &w)
		with := c.operation()
		if err == nil && o.Check != nil {
			err = o.Check(with)
		}
		return o, with, w, err
	}
	t.fill = func(c *call, args core.Raw) (core.Raw, error) {
		o, with, _, err := ready(c, args)
		if err == nil {
			err = cmp.Or(c.named(o), o.Hold(context.Background(), with))
		}
		if err != nil {
			return nil, err
		}
		return completed(o, t.params, args)
	}
	t.run = func(ctx context.Context, c *call, args core.Raw) (any, error) {
		o, with, w, err := ready(c, args)
		if err != nil {
			return nil, err
		}
		var notes []string
		with.Note = func(text string) { notes = append(notes, text) }
		out, err := o.Run(ctx, with)
		if failed := new(op.Failed); out != nil && ctx.Err() == nil && errors.As(err, &failed) {
			notes, err = append(notes, core.AsError(err).Message), nil // what was done is shown all the same
		}
		if err == nil {
			out, err = c.settled(ctx, o, out, w)
		}
		if err != nil {
			return nil, err
		}
		shown := shape.show(o, out)
		if members, is := shown.(map[string]any); is && notes != nil {
			members["message"] = line(strings.Join(append(notes, o.Sentence(out)), "; "), 1024)
		}
		return shown, nil
	}
	return t
}

// named refuses an agent or task that is not there: no person is asked about it.
func (c *call) named(o *op.Op) (err error) {
	for _, p := range o.Params {
		from, _, _ := strings.Cut(p.From, ":")
		id, is := p.Into.(*string)
		if !p.Arg || !is || *id == "" {
			continue
		}
		switch from {
		case "agent":
			_, err = c.eng.Fleet.Agent(context.Background(), c.id.Tenant, *id)
		case "task":
			_, err = c.eng.Tasks.Header(context.Background(), c.by, *id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// operation is the caller as operations know one. What an agent makes comes
// from its task and draws on the budgets of its session.
func (c *call) operation() *op.Call {
	with := &op.Call{Engine: c.eng, By: c.by, Keys: c.id.String(), Trace: cmp.Or(c.parent, c.trace), Dir: c.dir, Now: c.at}
	if c.agent != nil {
		with.Task, with.Session = c.agent.TaskID, c.agent.SessionID
	}
	return with
}

// wait is how long a call waits for the end of what it gave to do, in seconds.
type wait int

// cancelWait is how long a call waits for the work that it ended, in seconds.
const cancelWait = 5

// settled is what an operation gave back, once that is over or the wait for it
// is: clients see no end of work by themselves.
func (c *call) settled(ctx context.Context, o *op.Op, out any, w wait) (any, error) {
	if o.Effect == op.Destroys {
		w = cancelWait
	}
	if w == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w)*time.Second)
	defer cancel()
	var err error
	switch v := out.(type) {
	case task.Task:
		out, err = c.eng.Tasks.Wait(ctx, c.id.Tenant, v.TaskID, "")
	case op.Invoked:
		v.Subagent, err = c.eng.Skills.Wait(ctx, c.by, v.AgentID)
		out = v
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return out, err
}

// params are the arguments of an operation's tool: its parameters, and those of
// a list or a wait.
func params(o *op.Op) (all []param) {
	add := func(name string, p param) {
		if other, has := o.Tool.Names[name]; has {
			p.name = other
		}
		p.required = (p.required || slices.Contains(o.Tool.Need, name)) && !slices.Contains(o.Tool.Free, name)
		if p.name != "-" && !slices.ContainsFunc(all, func(q param) bool { return q.name == p.name }) {
			all = append(all, p) // a list of one agent is narrowed to no other
		}
	}
	for i, of := range o.Params {
		switch {
		case of.Sure: // the judge asks whether it is meant
		case of.Name == "wait": // no call lasts as long as work may
			add(of.Name, param{name: "wait_s", kind: integer, about: "seconds to wait for its end", def: 0, max: 50, into: func(_ *op.Op, w *wait) any { return w }})
		case of.Name != "wait-timeout":
			add(of.Name, parameter(o, of, i))
		}
	}
	if o.Filter != nil {
		for _, p := range filters(o) {
			add(p.name, p)
		}
	}
	return all
}

// parameter is the argument for the parameter of some place.
func parameter(o *op.Op, of *op.Param, place int) param {
	p := param{
		name: strings.ReplaceAll(of.Name, "-", "_"), about: cmp.Or(of.Client, strings.ReplaceAll(of.About, "`", "")), required: of.Need, enum: of.Enum, min: of.Least, max: of.Most,
		into: func(o *op.Op, _ *wait) any { return o.Params[place] },
	}
	p.kind, p.def = typeOf(of.Into)
	switch _, span := of.Into.(*time.Duration); {
	case span:
		p.name += "_s"
	case p.kind == "":
		panic(fmt.Sprintf("operation %s: %s: no argument of a tool holds a %T", o.Name, of.Name, of.Into))
	}
	noun, _, _ := strings.Cut(of.From, ":")
	if key := keyOf(noun); key != "" {
		if of.Arg {
			p.about = key + " of the " + noun
		}
		if p.name == key || p.name == noun {
			p.name = noun + "_" + key
		} else {
			p.name += "_" + noun + "_" + key // of another one: parent_task_id
		}
		if noun == "agent" {
			p.pattern = agentName
		}
	}
	if noun == "dir" {
		p.pattern = absolute
	}
	if p.kind == text && p.max == 0 && p.enum == nil && p.pattern == nil {
		p.min, p.max = 1, maxWords
		if of.From != "" || of.Arg {
			p.max = maxName
		}
	}
	return p
}

// typeOf is what an argument for a variable is, with its default; "" when there
// is none.
func typeOf(into any) (kind string, def any) {
	switch into := into.(type) {
	case *string:
		if *into != "" {
			def = *into
		}
		return text, def
	case *int:
		if *into != 0 {
			def = *into
		}
		return integer, def
	case *bool:
		return yesNo, *into
	case *time.Duration:
		return integer, nil
	case *op.Seconds:
		if *into != 0 {
			def = int(*into)
		}
		return integer, def
	case *[]string, *time.Time, *op.Words, *op.File:
		return text, nil
	case *core.Raw:
		if len(*into) > 0 {
			def = *into
		}
		return object, def
	}
	return "", nil
}

// Bounds of texts whose operation has none of its own, in characters.
const (
	maxName  = 128
	maxWords = 500
)

// keyOf says by what records of a noun are named; "" where nothing is.
func keyOf(noun string) string {
	switch noun {
	case "agent":
		return "name"
	case "task", "session", "approval", "policy", "decision", "subagent":
		return "id"
	}
	return ""
}

// filters are the arguments of a list.
func filters(o *op.Op) (all []param) {
	add := func(name, about string, most int, of func(*core.Filter) any) {
		if o.Tool.By != nil && !slices.Contains(o.Tool.By, name) || name == "status" && o.Statuses == nil {
			return
		}
		p := param{name: name, about: about, min: 1, max: most, into: func(o *op.Op, _ *wait) any { return of(o.Filter) }}
		p.kind, p.def = typeOf(of(o.Filter))
		if name == "status" {
			p.enum = o.Statuses
		}
		all = append(all, p)
	}
	add("status", "only of this status", maxName, func(f *core.Filter) any { return &f.Status })
	add("kind", "only of this "+cmp.Or(o.Tool.Names["kind"], "kind"), maxName, func(f *core.Filter) any { return &f.Kind })
	add("agent_name", "only of this agent", 64, func(f *core.Filter) any { return &f.Agent })
	add("session_id", "only of this session", maxName, func(f *core.Filter) any { return &f.Session })
	add("trace_id", "only of this trace", maxName, func(f *core.Filter) any { return &f.Trace })
	add("since", "only from this time on, RFC 3339", 40, func(f *core.Filter) any { return &f.Since })
	add("until", "only before this time, RFC 3339", 40, func(f *core.Filter) any { return &f.Until })
	add("match", "only with this text", 200, func(f *core.Filter) any { return &f.Match })
	return append(all, param{
		name: "page", kind: integer, about: "page, from 1; one past the end is empty", def: 1, min: 1, max: 1_000_000,
		into: func(o *op.Op, _ *wait) any { return &o.Filter.Page },
	}, param{
		name: "page_size", kind: integer, about: "how many to a page", def: cmp.Or(o.Tool.Size, core.DefaultPageSize), min: 1, max: core.MaxPageSize,
		into: func(o *op.Op, _ *wait) any { return &o.Filter.Size },
	})
}

// fill gives an operation the arguments of a call, which are valid.
func fill(o *op.Op, params []param, args core.Raw, w *wait) error {
	given := map[string]core.Raw{}
	if err := core.Decode(args, &given); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	for _, of := range o.Params {
		if of.Sure {
			*of.Into.(*bool) = true
		}
	}
	for _, p := range params {
		value := given[p.name]
		if value == nil {
			continue
		}
		into := p.into(o, w)
		of, is := into.(*op.Param)
		if is {
			of.Given, into = true, of.Into
			if list, many := into.(*[]string); many && of.Whole {
				*list = make([]string, 1)
				into = &(*list)[0]
			}
		}
		if err := p.decode(value, into); err != nil {
			return err
		}
		if is && of.Valid != nil {
			if err := of.Valid(); err != nil {
				return err
			}
		}
	}
	return nil
}

// completed are valid arguments with those that the operation's check gave: the
// judge sees what will be done.
func completed(o *op.Op, params []param, args core.Raw) (core.Raw, error) {
	all := map[string]core.Raw{}
	if err := core.Decode(args, &all); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	for _, p := range params {
		if of, is := p.into(o, nil).(*op.Param); is && of.Given && all[p.name] == nil {
			all[p.name] = core.MustEncode(of.Into)
		}
	}
	return core.Canonical(core.MustEncode(all))
}

// decode reads a valid argument into where an operation has it.
func (p param) decode(value core.Raw, into any) (err error) {
	var words string
	switch into := into.(type) {
	case *op.File:
		err = core.Decode(value, &words)
		into.Data = []byte(words)
	case *op.Words:
		err = core.Decode(value, &words)
		*into = strings.Fields(words)
	case *[]string:
		if err = core.Decode(value, &words); err == nil {
			*into = strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' })
		}
	case *time.Duration:
		var seconds int
		err = core.Decode(value, &seconds)
		*into = time.Duration(seconds) * time.Second
	case *time.Time:
		if err = core.Decode(value, &words); err == nil {
			if *into, err = time.Parse(time.RFC3339Nano, words); err != nil {
				return core.Invalid(p.name, clean(words), "a time like 2026-01-02T15:04:05Z")
			}
		}
	default:
		err = core.Decode(value, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
