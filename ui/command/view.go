package command

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
)

// Bounds of what an operator keeps.
const (
	maxViews     = 100
	maxColumns   = 40
	maxViewFile  = 1 << 20
	maxViewMatch = 500 // bytes of a filter
)

// View is how a list of the cockpit looks, kept by an operator under a name.
type View struct {
	Name    string   `json:"name"`
	List    string   `json:"list"`              // a pane: "fleet"
	Columns []string `json:"columns,omitempty"` // by their titles, in order; none is the list's own
	Sort    string   `json:"sort,omitempty"`    // a column's title, with a minus the other way round
	Match   string   `json:"match,omitempty"`   // what stands behind /
}

// check reports the first field that is not allowed. Which lists and columns there are
// knows the cockpit that shows it.
func (v *View) check() error {
	switch {
	case !themeName().MatchString(v.Name):
		return core.Invalid("name", v.Name, "1-32 lower-case letters, digits and -, not - at first")
	case !themeName().MatchString(v.List):
		return core.Invalid("list", v.List, "the name of a list of the cockpit, such as fleet")
	case len(v.Columns) > maxColumns:
		return usage("columns", "--columns: %d are too many; allowed: at most %d", len(v.Columns), maxColumns)
	case len(v.Match) > maxViewMatch:
		return usage("match", "--match: %d bytes; allowed: at most %d", len(v.Match), maxViewMatch)
	}
	for _, title := range append(slices.Clone(v.Columns), strings.TrimPrefix(v.Sort, "-")) {
		if len(title) > 32 || strings.ContainsFunc(title, func(r rune) bool { return r < ' ' || r > '~' }) {
			return core.Invalid("columns", core.Clip(title), "titles of columns with commas between")
		}
	}
	return nil
}

// views are those of all operators, by name: beside the keys and looks of whoever has the
// engine.
type views map[string]map[string]View

func (c *call) viewsFile() string { return filepath.Join(ConfigDir(c.env.getenv), "views.json") }

// mine are whose views a line is about, and all there are.
func (c *call) mine() (by string, all views, err error) {
	who, err := c.operator()
	if err != nil {
		return "", nil, err
	}
	data, err := userFile(c.viewsFile(), maxViewFile)
	if err == nil && data != nil {
		if err = core.Decode(data, &all); err != nil {
			err = core.Errorf(core.InvalidInput, "%s: %s; mend it or delete it", c.viewsFile(), err)
		}
	}
	return cmp.Or(who.Proof, who.Name), all, err
}

// keep writes them; whoever reads the file meanwhile sees the old or the new one.
func (c *call) keep(all views) error {
	path := c.viewsFile()
	data := core.MustEncode(all)
	if len(data) > maxViewFile {
		return core.Errorf(core.InvalidInput, "%s would have %d bytes; allowed: at most %d", path, len(data), maxViewFile)
	}
	if err := replaceFile(path, data); err != nil {
		return fileError("views", path, err)
	}
	return nil
}

// view is one of the caller's, and all there are.
func (c *call) view(name string) (v View, by string, all views, err error) {
	if by, all, err = c.mine(); err != nil {
		return v, by, all, err
	}
	v, ok := all[by][name]
	if !ok {
		there := strings.Join(slices.Sorted(maps.Keys(all[by])), ", ")
		return v, by, all, core.Errorf(core.NotFound, "view %q: not found; there are: %s", core.Clip(name), cmp.Or(there, "none")).With("field", "view")
	}
	return v, by, all, nil
}

// listed are the views of the caller's, by name.
func (c *call) listed() []View {
	by, all, _ := c.mine()
	out := slices.Collect(maps.Values(all[by]))
	core.Sort(out, func(a, b View) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (t *tree) views() *cobra.Command {
	var v View
	return t.group("view", "How you see lists of the cockpit, under names",
		t.command(spec{
			use: "save NAME", short: "Keep how a list looks; in the cockpit, the one that is shown", effect: Writes, ownScope: true, args: []string{"view"},
			flags: func(f *pflag.FlagSet) {
				f.StringVar(&v.List, "list", "fleet", "of this `LIST` of the cockpit")
				f.StringSliceVar(&v.Columns, "columns", nil, "with these `COLUMNS`, in order; none is the list's own")
				f.StringVar(&v.Sort, "sort", "", "sorted by this `COLUMN`, with a minus the other way round")
				f.StringVar(&v.Match, "match", "", "with this `FILTER`, as behind /")
			},
			run: func(c *call, args []string) error {
				v.Name = args[0]
				if err := v.check(); err != nil {
					return err
				}
				by, all, err := c.mine()
				if err != nil {
					return err
				}
				if all == nil {
					all = views{}
				}
				if all[by] == nil {
					all[by] = map[string]View{}
				}
				if all[by][v.Name] = v; len(all[by]) > maxViews {
					return core.Errorf(core.InvalidInput, "view %q: you have %d; allowed: at most %d", v.Name, maxViews, maxViews).With("field", "name")
				}
				if err := c.keep(all); err != nil {
					return err
				}
				return c.say(v, "saved view %s of %s", v.Name, v.List)
			},
		}),
		lists(t, spec{use: "list", short: "List your views", effect: Reads, ownScope: true}, nil,
			face.Of[View]{Columns: "VIEW:name LIST:list COLUMNS:columns,60 SORT:sort MATCH:match,40"}.Face(),
			func(c *call, f core.Filter) (core.Page[View], error) {
				return core.Pick(c.listed(), nil, f, func(v View) core.Traits { return core.Traits{Text: v.Name + " " + v.List} })
			}),
		t.command(spec{
			use: "use NAME", short: "Show a list as a view of yours has it; outside of the cockpit, print the view", effect: Reads, ownScope: true, args: []string{"view"},
			run: func(c *call, args []string) error {
				v, _, _, err := c.view(args[0])
				if err != nil {
					return err
				}
				return c.say(v, "view %s of %s: %s", v.Name, v.List, cmp.Or(strings.Join(v.Columns, ","), "its own columns"))
			},
		}),
		t.command(spec{
			use: "delete NAME", short: "Delete a view of yours", effect: Writes, ownScope: true, args: []string{"view"},
			run: func(c *call, args []string) error {
				v, by, all, err := c.view(args[0])
				if err != nil {
					return err
				}
				delete(all[by], v.Name)
				if err := c.keep(all); err != nil {
					return err
				}
				return c.say(v, "deleted view %s", v.Name)
			},
		}),
	)
}
