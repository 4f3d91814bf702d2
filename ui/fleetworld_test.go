package ui

import (
	"context"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
)

// Activity: scribe has a plan, calls of every state and changed files.
func (w fakeFleet) Activity(_ context.Context, t, name string, known time.Time) (*fleet.Activity, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.acts[name]; ok {
		if !known.IsZero() && a.At.Equal(known) {
			return nil, nil
		}
		return &a, nil
	}
	if t != tenant || name != "scribe" {
		return &fleet.Activity{}, nil
	}
	at := func(minutes int) time.Time { return start.Add(-time.Duration(minutes) * time.Minute) }
	return &fleet.Activity{
		TaskID: id("tk", 4), PlanAt: at(4), Mode: "the mode is ask now; ask was set", Usage: budget.Usage{Tokens: 45_600, CostUSD: 0.12},
		Plan: []fleet.Step{{Text: "read the tree", Status: "completed"}, {Text: "write NOTES.md", Status: "in_progress"}, {Text: "read it again", Status: "pending"}},
		Calls: []fleet.Call{
			{CallID: "c1", Tool: "execute", Title: "ls -la", State: fleet.CallDone, Began: at(6), Ended: at(5), Number: 1},
			{CallID: "c2", Tool: "read", Title: "look into go.mod", Asked: true, State: fleet.CallFailed, Error: "no such file", Began: at(5), Ended: at(5), Number: 2},
			{CallID: "c3", Tool: "execute", Args: `{"argv":["rm","-rf","/"]}`, Asked: true, State: fleet.CallDenied, Error: "never remove", Began: at(4), Ended: at(4), Number: 3},
			{CallID: "c4", Tool: "edit", Title: "write NOTES.md", Asked: true, State: fleet.CallAsked, Began: at(2), Number: 4},
		},
		Made: 4,
		Diffs: []fleet.Diff{
			{CallID: "c4", Path: "NOTES.md", Text: "NOTES.md\n@@ -1 +1,2 @@\n-old\n+three files changed\n+none is large", At: at(2), Number: 1},
			{CallID: "c4", Path: "docs/index.md", Text: "docs/index.md\n@@ -8,0 +9 @@\n+see NOTES.md \x1b[2J\u202e", At: at(1), Number: 2},
		},
		Drew: 2,
	}, nil
}

func (w *fakeWorld) Places(_, role, _ string) files.Places { return w.places[role] }

func (w fakeFleet) Queued(_, name string) []*fleet.Message { return w.queued[name] }

func (fakeFleet) Runtimes() []string { return []string{"acp", "exec"} }

func (fakeFleet) Projects(context.Context, string) ([]fleet.Project, error) {
	return []fleet.Project{{ID: "p1", Name: "quickstart"}, {ID: "p2", Name: "release"}}, nil
}

func (fakeFleet) Roles(context.Context, string, string) ([]fleet.Role, error) {
	return []fleet.Role{{ID: "r1", Name: "reader", ProjectName: "quickstart"}, {ID: "r2", Name: "writer", ProjectName: "quickstart"}, {ID: "r3", Name: "writer", ProjectName: "release"}}, nil
}
