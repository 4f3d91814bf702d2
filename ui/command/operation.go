package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// of makes the command of a noun from its operations, and from what is none.
func (t *tree) of(noun string, others ...func() *cobra.Command) func() *cobra.Command {
	return func() *cobra.Command {
		all := core.Map(others, func(make func() *cobra.Command) *cobra.Command { return make() })
		n := op.Of(noun)
		below := t.below(n, all...)
		for _, o := range n.Ops() {
			if o.Name == noun { // it can be done by its name alone
				top := t.operation(o)
				top.AddCommand(below...)
				return top
			}
		}
		return t.group(n.Name, n.About, below...)
	}
}

// below are the commands of a noun's operations, and others.
func (t *tree) below(n op.Noun, all ...*cobra.Command) []*cobra.Command {
	parts := map[string][]*cobra.Command{}
	for _, o := range n.Ops() {
		switch words := strings.Fields(o.Name); len(words) {
		case 1:
		case 2:
			all = append(all, t.operation(o))
		default:
			parts[words[1]] = append(parts[words[1]], t.operation(o))
		}
	}
	for part, about := range n.Parts {
		all = append(all, t.group(part, about, parts[part]...))
	}
	return all
}

// operation makes the command of an operation.
func (t *tree) operation(o *op.Op) *cobra.Command {
	given := operation{Op: o, texts: map[*op.Param]*string{}}
	s := spec{
		use: o.Name[strings.LastIndexByte(o.Name, ' ')+1:], short: o.Short, long: o.Long, example: o.Example,
		effect: o.Effect, role: o.Role, confirm: o.Confirm, undo: o.Undo, forAgents: o.ForAgents, looks: o.Looks, ownScope: o.Alone,
		flags: given.bind, check: given.check, run: given.run,
	}
	for _, p := range o.Params {
		switch {
		case p.Rest:
			s.use += " [-- " + p.About + "…]"
			s.anyArg = true
			continue
		case !p.Arg:
			if p.Need {
				s.needs = strings.TrimSpace(s.needs + " " + p.Name)
			}
			continue
		case p.Need:
			s.use += " " + p.About
		default:
			s.use += " [" + p.About + "]"
		}
		s.args = append(s.args, p.From)
	}
	for n := len(s.args); n > 0 && s.args[n-1] == ""; n-- {
		s.args = s.args[:n-1] // as if it were not said
	}
	return t.command(s)
}

// operation is a line that calls an operation.
type operation struct {
	*op.Op
	texts  map[*op.Param]*string // values that are read when the line is checked
	filter filter
	call   op.Call
}

// bind declares the flags.
func (o *operation) bind(f *pflag.FlagSet) {
	if o.Filter != nil {
		o.filter.bind(f, o.Statuses...)
		if o.Kinds != "" {
			source(f, "kind", o.Kinds)
		}
		if o.Agents != "" {
			source(f, "agent", o.Agents)
		}
	}
	for _, p := range o.Params {
		if p.Arg || p.Rest {
			continue
		}
		if p.Also != "" {
			f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
				if name == p.Also {
					name = p.Name
				}
				return pflag.NormalizedName(name)
			})
		}
		switch into := p.Into.(type) {
		case *string:
			if len(p.Enum) > 0 {
				enumVar(f, into, p.Name, "", *into, p.About, p.Enum...)
				continue
			}
			f.StringVar(into, p.Name, *into, p.About)
		case *[]string:
			if p.Whole {
				f.StringArrayVar(into, p.Name, *into, p.About)
			} else {
				f.StringSliceVar(into, p.Name, *into, p.About)
			}
		case *bool:
			f.BoolVarP(into, p.Name, p.Letter, *into, p.About)
		case *int:
			f.IntVar(into, p.Name, *into, p.About)
		case *int64:
			f.Int64Var(into, p.Name, *into, p.About)
		case *float64:
			f.Float64Var(into, p.Name, *into, p.About)
		case *time.Duration:
			spanVar(f, into, p.Name, p.About)
		case *uint64:
			f.Uint64Var(into, p.Name, *into, p.About)
		case *op.Seconds:
			f.Var(into, p.Name, p.About)
		case *op.File:
			o.texts[p] = f.String(p.Name, into.Name, p.About)
		case *op.Ago:
			f.StringVar(&into.Text, p.Name, into.Text, p.About)
			o.texts[p] = &into.Text
		case *core.Raw:
			o.texts[p] = f.String(p.Name, string(*into), p.About)
		case *op.Words, *op.Path, *time.Time:
			o.texts[p] = f.String(p.Name, "", p.About)
		default:
			panic(fmt.Sprintf("operation %s: --%s: no flag holds a %T", o.Name, p.Name, p.Into))
		}
		if p.From != "" {
			source(f, p.Name, p.From)
		}
	}
}

// check fills the parameters and refuses what is not allowed.
func (o *operation) check(c *call, args []string) (err error) {
	if args, err = o.after(c, args); err != nil {
		return err
	}
	for _, p := range o.Params {
		switch {
		case p.Arg:
			if p.Given = len(args) > 0; p.Given {
				args = o.place(p, args)
			}
		case !p.Rest:
			p.Given = c.flags.Changed(p.Name)
		}
		if p.Need && (!p.Given || blank(p.Into)) {
			return usage(field(p), "%s: %s is missing", o.Name, what(p))
		}
		if text := o.texts[p]; text != nil {
			if err := c.value(p, *text); err != nil {
				return err
			}
		}
		if p.Given && p.Valid != nil {
			if err := p.Valid(); err != nil {
				return err
			}
		}
		if !p.Given {
			continue
		}
		if p.Arg && p.From == "tenant" {
			c.g.Tenant = *p.Into.(*string)
		}
		if p.Makes && *p.Into.(*string) != "-" {
			if err := c.makesFile(); err != nil {
				return err
			}
		}
	}
	if o.Filter != nil {
		if *o.Filter, err = o.filter.read(c, o.Statuses...); err != nil {
			return err
		}
	}
	o.call = c.forOp()
	o.call.Emit = func(values any) error { return o.put(c, values, streamed()) }
	o.call.Open = func(tenant bool) error {
		err := c.opens(tenant)
		o.call.Engine, o.call.By, o.call.Role = c.eng, c.by, cmp.Or(c.role, c.env.Role)
		return err
	}
	if o.Check == nil {
		return nil
	}
	if err := o.Check(&o.call); err != nil {
		return err
	}
	if c.reads && o.Effect != op.Reads {
		return c.change(o.Role)
	}
	return nil
}

// forOp is the call as operations know it.
func (c *call) forOp() op.Call {
	data := ""
	if c.onFile() && DatabaseIn(c.g.Data) == "" {
		data = c.g.Data
	}
	path := c.env.getenv("PATH")
	if c.env.Remote {
		path = ""
	}
	return op.Call{
		Data: data, Path: path, Brief: c.g.Output != "json", Out: c.env.Stdout, File: c.large,
		Engine: c.eng, By: c.by, Role: c.env.Role, Dir: c.env.Dir, Remote: c.env.Remote, Idle: c.idle() && !c.watches(), Trace: c.traceparent(), Now: c.now(),
		Activate: c.activate,
		Note:     func(text string) { fmt.Fprintln(c.env.Stderr, term.Clean(text)) },
		Progress: func(text string) {
			if c.g.Output != "json" {
				fmt.Fprintln(c.env.Stderr, term.Clean(text))
			}
		},
		Waits: func(text string) {
			if c.g.Output != "json" {
				fmt.Fprintln(c.env.Stderr, term.Clean(text))
			} else if line, err := core.Encode(map[string]string{"waiting": text}); err == nil {
				fmt.Fprintf(c.env.Stderr, "%s\n", visible(line))
			}
		},
		Refused: func(err error) {
			if c.env.Refused != nil {
				c.env.Refused(c.by, err)
			}
		},
		Read: c.text, Stands: c.env.stands, Place: c.namesPlace, Sign: c.signer(),
	}
}

// place takes an argument's words from those that are left.
func (o *operation) place(p *op.Param, args []string) (left []string) {
	switch into := p.Into.(type) {
	case *[]string:
		*into = args
		return nil
	case *string:
		*into = args[0]
	default:
		o.texts[p] = &args[0]
	}
	return args[1:]
}

// after fills the parameter that takes all that follows --.
func (o *operation) after(c *call, args []string) ([]string, error) {
	at := slices.IndexFunc(o.Params, func(p *op.Param) bool { return p.Rest })
	if at < 0 {
		return args, nil
	}
	rest := o.Params[at]
	if dash := c.flags.ArgsLenAtDash(); dash >= 0 {
		*rest.Into.(*[]string), args, rest.Given = args[dash:], args[:dash], true
	}
	places := 0
	for _, p := range o.Params {
		if p.Arg {
			places++
		}
	}
	if len(args) > places {
		return nil, usage("args", "%s: unexpected argument %q; a command goes after --, as in: %[1]s -- %[3]s", o.Name, core.Clip(args[places]), core.Clip(core.Join(args[places:])))
	}
	return args, nil
}

// blank reports a value that can't stand where one is needed.
func blank(v any) bool {
	switch v := v.(type) {
	case *string:
		return strings.TrimSpace(*v) == ""
	case *time.Duration:
		return *v == 0
	}
	return false
}

func what(p *op.Param) string {
	if p.Arg {
		return p.About
	}
	if p.Rest {
		return "-- " + p.About + "…"
	}
	return "--" + p.Name
}

func field(p *op.Param) string { return strings.ReplaceAll(p.Name, "-", "_") }

// value reads what a parameter has as text.
func (c *call) value(p *op.Param, text string) (err error) {
	switch into := p.Into.(type) {
	case *int:
		if *into, err = strconv.Atoi(text); err != nil {
			return core.Invalid(field(p), text, "a whole number")
		}
	case *op.Path:
		if text != "" {
			*into = op.Path(c.env.path(text))
		}
	case *op.File:
		if into.Name = text; text != "" || p.Given {
			into.Data, err = c.file(p.Name, text)
		}
	case *core.Raw:
		if text != "" || p.Arg {
			*into, err = c.document(p.Name, text)
		}
	case *op.Ago:
		into.Time, err = c.instant(p.Name, text)
	case *op.Words:
		*into, err = Split(text)
	case *time.Time:
		if text == "" {
			return nil
		}
		at, parseErr := time.Parse(time.RFC3339Nano, text)
		if parseErr != nil {
			return usage(p.Name, "--%s: %q is not allowed; allowed: a time like 2026-01-02T15:04:05.678Z", p.Name, core.Clip(text))
		}
		*into = at.UTC()
	}
	return err
}

// run calls the operation and prints what it gives back.
func (o *operation) run(c *call, _ []string) error {
	if !o.Alone {
		o.call.Engine, o.call.By = c.eng, c.by
	}
	out, err := o.Run(c.ctx, &o.call)
	if out == nil {
		return err
	}
	if printErr := o.print(c, out); printErr != nil {
		return printErr
	}
	return err
}

// print prints what came of the operation.
func (o *operation) print(c *call, out any) error {
	if c.g.Output == "sentence" && !c.reads {
		_, err := fmt.Fprintln(c.env.Stdout, term.Clean(o.Sentence(out)))
		return err
	}
	return o.put(c, out, printers())
}

func (o *operation) put(c *call, out any, how []printer) error {
	for _, print := range how {
		if is, err := print(c, o.Op, out); is {
			return err
		}
	}
	return c.show(out)
}
