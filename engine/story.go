package engine

import (
	"context"

	"swarmdeck/engine/story"
)

// Story is what happened since a time, the oldest first; more says that older things
// of it are left out.
func (e *Engine) Story(ctx context.Context, tenant string, q story.Query) (lines []story.Line, more bool, err error) {
	t := story.Teller{DAG: e.DAG, Tasks: e.Tasks, Swarm: e.Swarm, Fleet: e.Fleet, Judge: e.Judge, Audit: e.Audit, Trees: e.Trees}
	return t.Tell(ctx, tenant, q)
}
