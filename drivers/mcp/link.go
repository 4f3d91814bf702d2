package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/tools"
)

// Bounds of a server of others.
const (
	maxTools     = 1000
	maxFrame     = 8 << 20   // bytes of one message
	maxSchema    = 256 << 10 // bytes of a tool's schema
	maxLastWords = 1024
	firstPause   = time.Second
	lastPause    = time.Minute
)

// link is the connection to one server.
type link struct {
	c      *Client
	spec   tools.Server
	digest string
	life   context.Context // ends what waits for the server, with end
	end    context.CancelFunc
	says   *announced

	// turn is taken by the one that begins the server or asks for its tools, which
	// may take long. Lock order: turn, mu.
	turn    chan struct{}
	heard   chan struct{} // this and the next three are of who has it; closed when the newest process has said all that it says on stderr
	pause   time.Duration // before the next beginning, after one that failed
	notYet  time.Time
	failure error

	mu      sync.Mutex
	session *mcp.ClientSession
	proc    *cell.Process
	list    []tools.Tool     // nil when it must be asked for
	changes int              // how often the server said that its tools changed
	again   bool             // the list is about to be asked for once more
	calls   map[*caller]bool // under way
	noise   string           // what the server said that is no message, until a call's log has it

	words sync.Mutex
	last  string // newest line of its stderr
}

// use gives the connection and the tools behind it, and begins what is not
// there. After a failure it waits longer each time before it begins again.
func (l *link) use(ctx context.Context) (*mcp.ClientSession, []tools.Tool, error) {
	if session, list := l.now(); list != nil {
		return session, list, nil
	}
	if err := l.take(ctx); err != nil {
		return nil, nil, err
	}
	defer l.give()
	if l.life.Err() != nil {
		return nil, nil, l.over()
	}
	session, list := l.now()
	if session == nil {
		if wait := time.Until(l.notYet); wait > 0 {
			return nil, nil, core.Errorf(core.Unavailable, "server %s failed, the next attempt is in %s: %v", l.spec.Name, wait.Round(time.Second), l.failure)
		}
		var err error
		if session, err = l.begin(ctx); err != nil {
			l.pause = min(max(firstPause, 2*l.pause), lastPause)
			l.notYet, l.failure = time.Now().Add(l.pause), err
			return nil, nil, core.Errorf(core.Unavailable, "server %s: %v", l.spec.Name, err)
		}
		l.pause = 0
	}
	if list == nil {
		var err error
		if list, err = l.learn(ctx, session); err != nil {
			return nil, nil, err
		}
	}
	return session, list, nil
}

// now gives the connection as it is, nil where there is none.
func (l *link) now() (*mcp.ClientSession, []tools.Tool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.list
}

// take takes the turn, unless ctx or the link ends first.
func (l *link) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.life.Done():
		return l.over()
	}
}

func (l *link) give() { <-l.turn }

func (l *link) over() error {
	return core.Errorf(core.Unavailable, "server %s was changed or is being closed", l.spec.Name)
}

// lastWait is how long a server that failed is listened to after its end.
const lastWait = time.Second

// begin starts the server and greets it; its caller has the turn.
func (l *link) begin(ctx context.Context) (*mcp.ClientSession, error) {
	ctx, cancel := l.soon(ctx)
	defer cancel()
	transport, proc, err := l.transport()
	if err != nil {
		return nil, err
	}
	opt := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			go l.relist() // it asks, and this must return first
		},
		ResourceListChangedHandler: l.says.listChanged,
		ResourceUpdatedHandler:     l.says.updated,
	}
	if l.c.asker() != nil {
		opt.ElicitationHandler = l.elicit
	}
	client := mcp.NewClient(&mcp.Implementation{Name: Name, Version: "1"}, opt)
	session, err := within(ctx, func() (*mcp.ClientSession, error) { return client.Connect(ctx, transport, nil) })
	if err != nil {
		if proc != nil {
			err = errors.Join(err, proc.Stop(cell.Grace{Interrupt: -1}))
			select { // why it failed may still be on its way
			case <-l.heard:
			case <-time.After(lastWait):
			}
			proc.CloseIO()
		}
		return nil, fmt.Errorf("begin: %w%s", err, l.lastWords())
	}
	l.mu.Lock()
	l.session, l.proc, l.list = session, proc, nil
	l.mu.Unlock()
	go l.follow(session, proc)
	return session, nil
}

// follow waits for the end of a connection and ends what is left of it.
func (l *link) follow(session *mcp.ClientSession, proc *cell.Process) {
	_ = session.Wait()
	if proc != nil {
		_ = proc.Stop(cell.Grace{Interrupt: -1})
		proc.CloseIO()
	}
	l.lost(session)
}

// lost forgets a connection that has ended.
func (l *link) lost(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session {
		l.session, l.proc, l.list = nil, nil, nil
	}
}

// relistPause gathers what a server says in a row about its tools.
const relistPause = 50 * time.Millisecond

// relist asks for the tools again, since the server says that they changed.
func (l *link) relist() {
	l.mu.Lock()
	l.list = nil
	l.changes++
	first, session := !l.again, l.session
	l.again = true
	l.mu.Unlock()
	if !first {
		return
	}
	time.Sleep(relistPause)
	l.mu.Lock()
	l.again = false
	l.mu.Unlock()
	if l.take(l.life) != nil {
		return
	}
	defer l.give()
	if is, list := l.now(); is == session && session != nil && list == nil {
		_, _ = l.learn(l.life, session) // else the next call asks
	}
}

// learn asks for the tools; its caller has the turn.
func (l *link) learn(ctx context.Context, session *mcp.ClientSession) ([]tools.Tool, error) {
	l.mu.Lock()
	changes := l.changes
	l.mu.Unlock()
	soon, cancel := l.soon(ctx)
	defer cancel()
	list, err := within(soon, func() ([]tools.Tool, error) { return l.ask(soon, session) })
	if err != nil && errors.Is(soon.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("it did not list its tools within %s, and is begun anew", l.c.opt.StartTime)
		l.replace(session)
	}
	if err != nil {
		return nil, l.explain(err)
	}
	if err := l.c.tools.learn(l.spec, list); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session && l.changes == changes {
		l.list = list
	}
	return list, nil
}

// soon bounds how long the server may take to begin or to list its tools.
func (l *link) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, l.c.opt.StartTime)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// close ends the server for good.
func (l *link) close() error {
	l.end()
	l.turn <- struct{}{} // what begins ends now
	defer l.give()
	l.mu.Lock()
	session, proc := l.session, l.proc
	l.session, l.proc = nil, nil
	l.mu.Unlock()
	if session == nil {
		return nil
	}
	var err error
	if proc != nil {
		err = proc.Stop(cell.Grace{Interrupt: -1})
	}
	closed := make(chan struct{})
	go func() { // it waits for calls under way
		defer close(closed)
		_ = session.Close()
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
	}
	return err
}

// transport begins the process, or names the address.
func (l *link) transport() (mcp.Transport, *cell.Process, error) {
	if l.spec.URL != "" {
		u, err := url.Parse(l.spec.URL)
		if err != nil || u.Host == "" {
			return nil, nil, core.Invalid("url", l.spec.URL, "an http or https URL")
		}
		values := http.Header{}
		for name, from := range l.spec.Headers {
			value := l.c.opt.Getenv(from)
			if value == "" {
				return nil, nil, core.Errorf(core.Unavailable, "header %s: the environment variable %s is not set", name, from)
			}
			values.Set(name, value)
		}
		return &mcp.StreamableClientTransport{
			Endpoint: l.spec.URL, MaxRetries: -1, MaxEventSize: maxFrame, HTTPClient: showing(u, values, maxFrame),
		}, nil, nil
	}
	home := filepath.Join(l.c.opt.State, l.spec.TenantID, l.spec.Name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the home of server %s: %w", l.spec.Name, err)
	}
	env, mask, err := l.c.opt.Secrets(l.life, l.spec.TenantID, l.spec.Env)
	if err != nil {
		return nil, nil, err
	}
	profile, err := cell.ParseProfile("profile", l.spec.Profile)
	if err != nil {
		return nil, nil, err
	}
	wall := cell.Wall{Profile: profile, Told: true, Work: true, More: l.spec.Places}
	if named, given := env["HOME"]; !given {
		wall.Home = home
	} else if _, err := os.Stat(named); err == nil {
		wall.More.Write = append(slices.Clone(wall.More.Write), named)
	}
	proc, err := l.c.sup.Start(cell.Spec{
		Run: "mcp-" + l.spec.TenantID + "-" + l.spec.Name, Whose: cell.Whose{Tenant: l.spec.TenantID}, Argv: l.spec.Command,
		Dir: cmp.Or(l.spec.Dir, home), Env: env, Limits: l.c.opt.Limits, Wall: wall,
	})
	if err != nil {
		return nil, nil, err
	}
	heard := make(chan struct{})
	l.heard = heard
	l.words.Lock()
	l.last = "" // it was another process that said it
	l.words.Unlock()
	go func() {
		defer close(heard)
		l.listen(proc, mask)
	}()
	return &mcp.IOTransport{Reader: messages(mask, proc.Stdout, l.passOver()), Writer: proc.Stdin, MaxLineLength: maxFrame}, proc, nil
}

// listen reads what the server says on stderr, and keeps the newest line.
func (l *link) listen(proc *cell.Process, mask *secret.Mask) {
	lines := mask.Writer(&pipe.Splitter{Max: maxLastWords, Emit: func(text []byte, _ int) {
		if s := line(pipe.Text(text), maxLastWords); s != "" {
			l.words.Lock()
			l.last = s
			l.words.Unlock()
		}
	}})
	defer lines.Close()
	_, _ = io.Copy(lines, proc.Stderr)
}

func (l *link) lastWords() string {
	l.words.Lock()
	defer l.words.Unlock()
	if l.last == "" {
		return ""
	}
	return "; it said: " + l.last
}

// ask lists the tools; what can't be shown or called is left out.
func (l *link) ask(ctx context.Context, session *mcp.ClientSession) ([]tools.Tool, error) {
	list, total := []tools.Tool{}, 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(list) == maxTools {
			break
		}
		schema, err := core.Encode(t.InputSchema)
		if err != nil || len(schema) > maxSchema || t.Name == "" || line(t.Name, 200) != t.Name {
			continue
		}
		if schema, err = cleanJSON(schema); err != nil {
			continue
		}
		digest, said, err := told(*t)
		if total += len(said); err != nil || len(said) > maxSchema || total > maxFrame {
			continue
		}
		hints := cmp.Or(t.Annotations, &mcp.ToolAnnotations{})
		list = append(list, tools.Tool{
			Server: l.spec.Name, Name: t.Name, Title: line(t.Title, 200), Description: line(t.Description, 2000), InputSchema: schema,
			Digest: digest, Said: said,
			// By the protocol, what is silent about an open world acts in one.
			ReadOnly: hints.ReadOnlyHint && hints.OpenWorldHint != nil && !*hints.OpenWorldHint && (hints.DestructiveHint == nil || !*hints.DestructiveHint),
		})
	}
	return list, nil
}

// told is all that a server says of a tool: its digest, and its lines for people.
func told(t mcp.Tool) (digest, text string, err error) {
	t.Meta, t.Icons = nil, nil // of this answer, and never shown
	if digest, err = core.Digest(t); err != nil {
		return "", "", err
	}
	about := strings.ReplaceAll(t.Description, "\x00", "\u2400") // a text without that is kept
	t.Description = ""
	rest, err := json.Marshal(t, json.Deterministic(true), jsontext.WithIndent("  "))
	return digest, about + "\n\n" + string(rest) + "\n", err
}

// explain names the server and what it said last.
func (l *link) explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return core.Errorf(core.Unavailable, "server %s: %s%s", l.spec.Name, line(err.Error(), 1024), l.lastWords())
}

// showing is a client that shows headers to the one host that they are for, wherever a
// redirect leads, and reads no more of an answer than so many bytes: what streams events
// bounds each by itself.
func showing(to *url.URL, headers http.Header, most int64) *http.Client {
	return &http.Client{Transport: headersFor{to.Scheme, to.Host, headers, most}}
}

type headersFor struct {
	scheme, host string
	values       http.Header
	most         int64
}

func (h headersFor) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == h.host && r.URL.Scheme == h.scheme {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, h.values)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		answer.Body = http.MaxBytesReader(nil, answer.Body, h.most)
	}
	return answer, err
}
