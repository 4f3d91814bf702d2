package op

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
)

// List is the operation that lists what a source of ids knows: "task" is listed by
// "task list". nil is none.
func List(source string) *Op {
	name := source + " list"
	switch source {
	case "event":
		name = "audit list"
	case "rule":
		name = "policy rules list"
	case "filerule":
		name = "files list"
	case "witness":
		name = "audit witness list"
	case "message":
		name = "bus list"
	case "topic", "subscription":
		name = "bus " + source + "s"
	case "execution":
		name = "skill executions"
	case "source":
		name = "skill sources"
	case "intent":
		name = "dag intents"
	case "record":
		name = "dag events"
	case "resource":
		name = "dag resource list"
	case "workspace":
		name = "cad workspace list"
	case "cadagent", "cadscenario", "cadworkflow":
		name = "cad " + strings.TrimPrefix(source, "cad") + " list"
	case "cadrole":
		name = "cad roles"
	}
	return Find(name)
}

// shown are the operations that show a record by an id alone, in the order in which a
// name is looked for, and the sources of ids that are looked through for one cut short.
var (
	shown = []string{
		"agent show", "subagent show", "session show", "skill show", "host show", "operator show", "notice show", "cad agent show", "cad workspace show",
		"cad scenario show", "dag resource show", "bus show", "skill execution", "dag show",
	}
	numbered = map[string]string{
		core.TaskPrefix: "task show", core.SessionPrefix: "session show", core.ApprovalPrefix: "approval show", core.DecisionPrefix: "decision show",
		core.EventPrefix: "audit show", core.PolicyPrefix: "policy show", core.IntentPrefix: "dag intent show", core.WorkflowPrefix: "cad workflow show",
	}
	cutShort = []string{"task", "approval", "session", "agent", "subagent", "cadworkflow"}
)

// find gives the record that an id of any noun names, and that noun. An approval counts
// as shown to the caller only where that is so.
func (c *Call) find(ctx context.Context, id string, shows bool) (noun string, v any, err error) {
	if strings.HasPrefix(id, core.ApprovalPrefix+"_") && !shows {
		if v, err = c.Judge.Card(ctx, c.By.Tenant, id); err == nil || !absent(err) {
			return "approval", v, err
		}
	}
	if prefix, _, _, is := core.ParseID(id); is && numbered[prefix] != "" {
		return c.showBy(ctx, numbered[prefix], id)
	}
	if id == "tenant" || strings.HasPrefix(id, "agent:") || strings.HasPrefix(id, "session:") {
		return c.budget(ctx, id)
	}
	for _, name := range shown {
		if noun, v, err = c.showBy(ctx, name, id); err == nil || !absent(err) {
			return noun, v, err
		}
	}
	var all []string
	for _, source := range cutShort {
		all = append(all, c.short(ctx, source, id)...)
	}
	switch len(all) {
	case 0:
		return "", nil, core.Errorf(core.NotFound, "%q: nothing has this name, or an id that begins or ends so; swarmdeck status names what there is", core.Clip(id)).With("field", "id").With("value", core.Clip(id))
	case 1:
		return c.find(ctx, all[0], shows)
	}
	return "", nil, ambiguous("id", id, all)
}

func (c *Call) showBy(ctx context.Context, name, id string) (noun string, v any, err error) {
	o := Find(name)
	noun = strings.TrimSuffix(name, " show")
	if c.By.Kind == core.Agent && !o.ForAgents {
		return noun, nil, core.Missing(noun, id)
	}
	*o.Params[0].Into.(*string) = id // not Given: an id that was cut short is looked for afterwards
	v, err = o.Run(ctx, c)
	return noun, v, err
}

func absent(err error) bool {
	return errors.Is(err, core.Kind(core.NotFound)) || errors.Is(err, core.Kind(core.InvalidInput))
}

func (c *Call) budget(ctx context.Context, subject string) (noun string, v any, err error) {
	all, err := c.Swarm.Budgets.List(ctx, c.By.Tenant)
	for i := range all {
		if all[i].Subject == subject {
			return "budget", all[i], nil
		}
	}
	if err == nil {
		err = core.Missing("budget", subject)
	}
	return "budget", nil, err
}

// most is how many ids that one cut short may mean are named.
const most = 4

func ambiguous(field, id string, all []string) error {
	more := ""
	if len(all) > most {
		all, more = all[:most], ", …"
	}
	return core.Errorf(core.InvalidInput, "%s: %q is the beginning or ending of several: %s%s", field, core.Clip(id), strings.Join(all, ", "), more).
		With("field", field).With("value", core.Clip(id)).With("allowed", all)
}

// whole replaces ids that were cut short by those that they are an ending or a
// beginning of. What can't be undone takes a name as it is.
func (o *Op) whole(ctx context.Context, c *Call) error {
	if c.By.Kind == core.Agent || o.Confirm == ConfirmType {
		return nil
	}
	for _, p := range o.Params {
		source, _, _ := strings.Cut(p.From, ":")
		if !p.Given {
			continue
		}
		switch into := p.Into.(type) {
		case *string:
			if err := c.complete(ctx, source, field(p.Name), into); err != nil {
				return err
			}
		case *[]string:
			for i := range *into {
				if err := c.complete(ctx, source, field(p.Name), &(*into)[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func field(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (c *Call) complete(ctx context.Context, source, field string, id *string) error {
	if source == "tree" {
		source = "agent"
	}
	switch source {
	case "task", "approval", "session", "decision", "event", "rule", "policy", "intent", "cadworkflow", "agent", "subagent", "message", "execution":
	default:
		return nil
	}
	if _, _, _, is := core.ParseID(*id); is || c.Engine == nil {
		return nil
	}
	if source == "agent" && c.Fleet.Known(c.By.Tenant, *id) { // there may be more of them than are looked through
		return nil
	}
	all := c.short(ctx, source, *id)
	if len(all) > 1 {
		return ambiguous(field, *id, all)
	}
	if len(all) == 1 {
		*id = all[0]
	}
	return nil
}

// short are the ids of a source that begin or end so, at most one more than are named.
// One that is that id is the only one.
func (c *Call) short(ctx context.Context, source, id string) (all []string) {
	o := List(source)
	if o == nil || o.Filter == nil || id == "" || c.By.Kind == core.Agent && !o.ForAgents {
		return nil
	}
	for o.Filter.Page, o.Filter.Size = 1, core.MaxPageSize; o.Filter.Page <= 10; o.Filter.Page++ { // 1,000 that have names
		out, err := o.run(ctx, c)
		if err != nil {
			return nil
		}
		rows, of := face.Rows(out)
		f := FaceOf(of)
		for i := range rows.Len() {
			name := f.ID(face.Row(rows, i))
			if prefix, _, newest, is := core.ParseID(name); is && i == 0 {
				_, page := out.(interface{ Rows() (any, core.PageInfo) }).Rows()
				return numbersLike(prefix, c.By.Tenant, id, newest-min(newest, uint64(page.Total))+1, newest)
			}
			if name == id {
				return []string{name}
			}
			if len(all) <= most && (strings.HasPrefix(name, id) || strings.HasSuffix(name, id)) {
				all = append(all, name)
			}
		}
		if _, page := out.(interface{ Rows() (any, core.PageInfo) }).Rows(); !page.Next {
			break
		}
	}
	return all
}

// numbersLike are the ids from first to newest that begin or end so, the newest first.
// No record is read: there are no gaps between them.
func numbersLike(prefix, tenant, id string, first, newest uint64) (all []string) {
	base := strings.TrimSuffix(core.NewID(prefix, tenant, 0), strings.Repeat("0", 10))
	lo, hi, step := first, newest, uint64(1)
	digits := strings.TrimPrefix(id, base)
	if strings.HasPrefix(base, id) {
		digits = ""
	}
	n, err := strconv.ParseUint("0"+digits, 10, 64)
	if err != nil || len(digits) > 10 {
		return nil
	}
	for range len(digits) {
		step *= 10
	}
	if digits == id { // an ending
		if hi < n {
			return nil
		}
		hi -= (hi - n) % step
	} else {
		wide := uint64(1)
		for range 10 - len(digits) {
			wide *= 10
		}
		lo, hi, step = max(lo, n*wide), min(hi, n*wide+wide-1), 1
	}
	for n := hi; n >= lo && n > 0 && len(all) <= most; n -= min(n, step) {
		all = append(all, core.NewID(prefix, tenant, n))
	}
	return all
}
