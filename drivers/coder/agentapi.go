package coder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/drivers/sse"
	"swarmdeck/engine/core"
)

// app is the agentapi server beside an agent, reached through the
// deployment's app proxy (agentapi, openapi 0.11).
type app struct {
	client  *codersdk.Client
	path    string      // below the deployment
	missing *core.Error // why there is none; nil else
}

// message is one of the conversation. The content is a piece of a terminal's
// screen; it changes while the agent writes.
type message struct {
	ID      int    `json:"id"`
	Role    string `json:"role"` // agent, user
	Content string `json:"content"`
}

// update is one event: a message, or a status where that is not "".
type update struct {
	message
	status string // stable, running
}

// appAt is the app of a workspace. That there is none, each call says.
func appAt(c *codersdk.Client, ws *codersdk.Workspace, slug string) *app {
	agent, found := agentOf(ws), appOf(ws, slug)
	if agent == nil || found == nil {
		return &app{missing: core.Errorf(core.Unavailable, "the workspace has no app %s: options.app_slug names the one that serves agentapi", cmp.Or(slug, defaultSlug)).
			With("field", "options.app_slug")}
	}
	return &app{client: c, path: fmt.Sprintf("/@%s/%s.%s/apps/%s", url.PathEscape(ws.OwnerName), url.PathEscape(ws.Name),
		url.PathEscape(agent.Name), url.PathEscape(found.Slug))}
}

// open starts one request; the caller closes the body.
func (a *app) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	if a.missing != nil {
		return nil, a.missing
	}
	resp, err := a.client.Request(ctx, method, a.path+path, body)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind != "text/html" {
		return resp, nil
	}
	defer resp.Body.Close()
	if kind == "text/html" { // the proxy's own page
		return nil, core.Errorf(core.Unavailable, "the agent's app does not answer (%d)", resp.StatusCode).With("status", resp.StatusCode)
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound {
		return nil, codersdk.ReadBodyAsError(resp)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	var problem struct{ Title, Detail string }
	_ = json.Unmarshal(text, &problem) // anything else is shown as it is
	if problem.Title+problem.Detail != "" {
		text = []byte(problem.Title + ": " + problem.Detail)
	}
	return nil, core.Errorf(core.Unavailable, "the agent's app answers %d: %s", resp.StatusCode, core.OneLine(string(text), 300)).With("status", resp.StatusCode)
}

// do makes one call and decodes its answer into v.
func (a *app) do(ctx context.Context, what, method, path string, body, v any) error {
	ctx, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	resp, err := a.open(ctx, method, path, body)
	if err != nil {
		return explain(what, err)
	}
	defer resp.Body.Close()
	return explain(what, json.NewDecoder(resp.Body).Decode(v))
}

// status is "stable" when the agent waits for a message.
func (a *app) status(ctx context.Context) (string, error) {
	var s struct{ Status string }
	err := a.do(ctx, "ask the agent's status", http.MethodGet, "/status", nil, &s)
	if err == nil && s.Status != "stable" && s.Status != "running" {
		err = core.Errorf(core.Unavailable, "the agent's app does not answer like agentapi")
	}
	return s.Status, err
}

func (a *app) messages(ctx context.Context) ([]message, error) {
	var m struct{ Messages []message }
	err := a.do(ctx, "read the conversation", http.MethodGet, "/messages", nil, &m)
	return m.Messages, err
}

// post sends a message of type user, which returns when the agent has begun on
// it, or raw: keys, at any time.
func (a *app) post(ctx context.Context, kind, content string) error {
	var ok struct{ OK bool }
	err := a.do(ctx, "send to the agent", http.MethodPost, "/message", map[string]string{"type": kind, "content": content}, &ok)
	if err == nil && !ok.OK {
		err = core.Errorf(core.Unavailable, "send to the agent: its app does not say that it took it")
	}
	return err
}

// events hands on what happens, after all that has happened so far, until the
// stream or ctx ends. open is called once the stream is there.
func (a *app) events(ctx context.Context, open func(), each func(update)) error {
	resp, err := a.open(ctx, http.MethodGet, "/events", nil)
	if err != nil {
		return explain("follow the agent", err)
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return core.Errorf(core.Unavailable, "follow the agent: its app does not answer like agentapi")
	}
	open()
	return explain("follow the agent", sse.Each(resp.Body, maxEvent, func(kind string, data []byte) error {
		if u, ok := readUpdate(kind, data); ok {
			each(u)
		}
		return nil
	}))
}

// readUpdate leaves out what it does not know.
func readUpdate(kind string, data []byte) (update, bool) {
	switch kind {
	case "message_update":
		var m struct {
			ID            *int
			Role, Message string
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			return update{}, false
		}
		return update{message: message{*m.ID, m.Role, m.Message}}, true
	case "status_change":
		var s struct{ Status string }
		if json.Unmarshal(data, &s) != nil || s.Status != "stable" && s.Status != "running" {
			return update{}, false
		}
		return update{status: s.Status}, true
	}
	return update{}, false
}
