package coder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/drivers/sse"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
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

// maxMessage is how many bytes one line of the log has.
const maxMessage = 48 << 10

// talk is what the agent says to somebody, on its way to the log. A text changes while
// the agent writes it, so it is shown when it stands still or another one begins.
type talk struct {
	say  func(fleet.Event)
	most int // bytes of texts that are held

	base  int            // messages up to this id are older
	last  int            // the newest id of what the agent says
	texts map[int]string // as they are
	told  map[int]string // as they were shown
	held  int            // bytes of texts
	full  bool
	at    time.Time // when the newest has changed
}

func newTalk(base, most int, say func(fleet.Event)) *talk {
	return &talk{say: say, most: most, base: base, last: base, texts: map[int]string{}, told: map[int]string{}}
}

// take notes a message's text; only what the agent says since the base counts.
func (t *talk) take(m message) {
	if m.ID <= t.base || m.Role != "agent" {
		return
	}
	text := tidy(m.Content)
	old, known := t.texts[m.ID]
	if known && old == text {
		return
	}
	more := len(text) - len(old)
	if !known {
		more += 64 // each costs something
	}
	if t.held+more > t.most {
		if !t.full {
			t.full = true
			t.say(fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf("what the agent says from here on is left out: it is more than %d MiB at once", t.most>>20)})
		}
		return
	}
	t.held += more
	t.texts[m.ID] = text
	if m.ID > t.last {
		t.show(t.last)
		t.last = m.ID
	}
	t.at = time.Now()
	if m.ID < t.last {
		t.show(m.ID)
	}
}

// tidy makes valid text of a piece of a terminal's screen.
func tidy(s string) string {
	s = pipe.Text([]byte(s))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// show passes on what a message says that was not passed on yet. A text that
// was changed, not continued, is passed on whole.
func (t *talk) show(id int) {
	text, told := t.texts[id], t.told[id]
	if text == told || text == "" {
		return
	}
	t.told[id] = text
	if told != "" && strings.HasPrefix(text, told) {
		text = strings.TrimLeft(text[len(told):], "\n")
	}
	for piece := range keeper.Pieces(text, maxMessage) {
		t.say(fleet.Event{Type: "message", Text: piece})
	}
}

// showAll passes on everything, in order.
func (t *talk) showAll() {
	for _, id := range slices.Sorted(maps.Keys(t.texts)) {
		t.show(id)
	}
}
