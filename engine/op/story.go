package op

import (
	"context"
	"slices"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/story"
)

func stories() []*Op {
	var q story.Query
	return []*Op{list(Op{
		Name: "story", Short: "Tell what happened since a time, turn by turn", Kinds: "enum:turn,said,told,ran,edited,tests,asked,answered,denied,failed,log,did",
		Long: "Tell what happened since --since (default 1h ago), the oldest first: which tasks began and ended and what they cost, what\n" +
			"was run with its exit, edited, tested, asked and answered by whom, and why something failed. Of an AGENT all that it did\n" +
			"is told, else each task's outcome and what people did. --page 1 is the newest. In the cockpit: key .",
		Example: "story ada --since 10m\nstory --project web --since 2h\nstory --kind failed,asked",
		Params: []*Param{
			maybe(&q.Agent, "AGENT", "agent"), flag(&q.Project, "project", "of the agents of this `PROJECT`").from("project"),
		},
		Tool: Tool{Name: "tell_story", By: []string{"kind", "since", "match"}, Size: core.MaxPageSize},
	}, func(ctx context.Context, c *Call, f core.Filter) (page core.Page[story.Line], err error) {
		if q.Agent == "" {
			q.Agent = f.Agent
		}
		if q.Since = f.Since; q.Since.IsZero() {
			q.Since = c.Now.Add(-time.Hour)
		}
		lines, more, err := c.Story(ctx, c.By.Tenant, q)
		lines = slices.DeleteFunc(lines, func(l story.Line) bool {
			return !core.Wants(f.Kind, l.What) || !core.Wants(f.Task, l.TaskID) || !f.Within(l.At) || !f.Finds(l.Text)
		})
		if page.Items, page.Info.Total = lines, len(lines); f.Page > 0 || f.Size > 0 {
			if f, err = f.Check(); err == nil {
				slices.Reverse(lines)
				page = core.PageOf(lines, f)
				slices.Reverse(page.Items)
			}
		}
		page.Info.AtLeast = more
		return page, err
	})}
}
