package fleet

import (
	"context"
	"maps"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
)

// Bounds of causes: how many are read at a time, and kept.
const (
	causesRead = 50
	causesKept = 2000
)

// causes are why tasks failed, as their results say, by their ids. What is over stays
// as it is: each is read once.
type causes struct {
	tasks  Tasks
	known  map[string]string
	reader pane.Reader[map[string]string]
}

func newCauses(name string, of Tasks) causes {
	return causes{tasks: of, known: map[string]string{}, reader: pane.NewReader[map[string]string](name)}
}

// of is why a task failed, "…" while that is read.
func (c *causes) of(id string) string {
	if why, known := c.known[id]; known {
		return why
	}
	return "…"
}

// read reads some of those that are not known yet; nil when all are.
func (c *causes) read(env pane.Env, ids []string) tea.Cmd {
	var want []string
	for _, id := range ids {
		if _, known := c.known[id]; !known && len(want) < causesRead {
			want = append(want, id)
		}
	}
	if len(want) == 0 {
		return nil
	}
	tenant, tasks := env.Tenant, c.tasks
	return c.reader.Read(tenant, func(ctx context.Context) (map[string]string, error) {
		got := make(map[string]string, len(want))
		for _, id := range want {
			r, err := tasks.Result(ctx, tenant, id)
			switch {
			case ctx.Err() != nil:
				return got, nil
			case err != nil || r.Error == nil:
				got[id] = "what it said is no longer kept"
			default:
				got[id], _, _ = strings.Cut(strings.TrimSpace(r.Error.Message), "\n")
			}
		}
		return got, nil
	})
}

// take takes what was read, and says whether it was that.
func (c *causes) take(env pane.Env, body any) bool {
	r, ok := c.reader.Take(env.Tenant, body)
	if !ok {
		return false
	}
	if len(c.known) > causesKept {
		clear(c.known)
	}
	maps.Copy(c.known, r.Got)
	return true
}
