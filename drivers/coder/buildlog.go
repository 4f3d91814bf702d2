package coder

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const (
	// maxSaid is how many bytes of the end of a build that failed are its reason.
	maxSaid = 350
	// maxLines is how many lines of it are in the agent's log.
	maxLines = 30
)

// buildFault is why a build failed, in its own words.
type buildFault struct {
	build uuid.UUID
	text  string
}

// whyFailed reads what a build that failed said at last: why are its errors, or else its
// last lines, and lines the end of its log. Nothing is what can't be read.
func (s *site) whyFailed(ctx context.Context, build uuid.UUID) (why string, lines []string) {
	logs, err := call(ctx, "read the build's log", func(ctx context.Context) (logs []codersdk.ProvisionerJobLog, err error) {
		res, err := s.client.Request(ctx, http.MethodGet, apiPath+"workspacebuilds/"+build.String()+"/logs", nil)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, codersdk.ReadBodyAsError(res)
		}
		return logs, json.NewDecoder(io.LimitReader(res.Body, maxEvent)).Decode(&logs)
	})
	if err != nil {
		return "", nil
	}
	var errs, all []string
	for _, l := range logs {
		line := core.OneLine(l.Output, 200)
		if line == "" {
			continue
		}
		if all = append(all, line); l.Level == codersdk.LogLevelError {
			errs = append(errs, line)
		}
	}
	lines = all[max(0, len(all)-maxLines):]
	if len(errs) > 0 {
		all = errs
	}
	first, size := len(all), 0
	for first > 0 && size+len(all[first-1]) <= maxSaid {
		first--
		size += len(all[first]) + len("; ")
	}
	return strings.Join(all[first:], "; "), lines
}

// heard reads why the newest build failed, once.
func (a *agent) heard(ws *codersdk.Workspace) {
	b := &ws.LatestBuild
	a.mu.Lock()
	known := a.why.build == b.ID
	a.mu.Unlock()
	if known || b.Status != codersdk.WorkspaceStatusFailed {
		return
	}
	text, lines := a.site.whyFailed(a.life, b.ID)
	a.mu.Lock()
	a.why = buildFault{b.ID, text}
	told := a.mem.Failed == b.ID.String()
	if len(lines) > 0 {
		a.mem.Failed = b.ID.String()
	}
	a.mu.Unlock()
	if told || len(lines) == 0 {
		return
	}
	a.say(fleet.Event{Type: "log", Level: "WARN", Text: "the workspace's " + verb(b.Transition) + " failed; its log ends with\n" + strings.Join(lines, "\n")})
	_ = a.keep() // else the next engine tells it again
}

// facts are those of the newest picture of the workspace; mu is held.
func (a *agent) facts() facts {
	f := factsOf(a.ws, a.set.AppSlug)
	if a.why.build == a.ws.LatestBuild.ID && a.why.text != "" {
		f.jobError = strings.TrimPrefix(f.jobError+": "+a.why.text, ": ")
	}
	return f
}
