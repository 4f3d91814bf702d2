package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

// deafReader reads until it is told to read nothing more.
type deafReader struct {
	io.ReadCloser
	mu sync.RWMutex
}

func (r *deafReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.mu.RLock()
	defer r.mu.RUnlock()
	return n, err
}

// actAsServerThatHangs has tools that never answer: "deaf" hears nothing after it,
// "slow" leaves the server as it was. "babble" says what is no message, "begun" which
// of its lives it is, and "ask" asks a person. With HANGS=list it never lists its tools.
func actAsServerThatHangs() {
	in := &deafReader{ReadCloser: os.Stdin}
	s := mcp.NewServer(&mcp.Implementation{Name: "hangs", Version: "1"}, nil)
	type none struct{}
	add := func(name string, do func(*mcp.CallToolRequest) string) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: do(r)}}}, nil, nil
		})
	}
	for name, deaf := range map[string]bool{"deaf": true, "slow": false} {
		add(name, func(*mcp.CallToolRequest) string {
			if deaf {
				in.mu.Lock()
			}
			select {}
		})
	}
	begun := time.Now().UnixNano() // a cell's processes may be of the same number
	add("begun", func(*mcp.CallToolRequest) string { return fmt.Sprint("begun at ", begun) })
	add("babble", func(*mcp.CallToolRequest) string {
		for range 3 {
			_, _ = os.Stdout.WriteString("Server\x1b[2J listening\n[1,2]\n{\"id\":1}\n")
		}
		return "babbled"
	})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(r.Params.InputResponses) == 0 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{
				Message: "Who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
			}}}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "asked"}}}, nil
	})
	if os.Getenv("HANGS") == "list" {
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					select {}
				}
				return next(ctx, method, r)
			}
		})
	}
	fmt.Println("Welcome!")
	_ = s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: os.Stdout})
}

// impatient is a house with a server that hangs, which has a second for each call.
func impatient(t *testing.T, how string) *house {
	t.Helper()
	var c *Client
	h := newHouse(t, func(opt *engine.Options, sup *cell.Supervisor) {
		c = NewClient(sup, ClientOptions{State: t.TempDir(), StartTime: 20 * time.Second, PingTime: 2 * time.Second})
		if how == "list" {
			c.opt.StartTime = 8 * time.Second
		}
		opt.Tools, opt.Runners[Kind], opt.SkillRunners[SkillKind] = c, c.Runner(), c.SkillRunner()
	})
	c.Open(h.eng.Tools, h.eng.Trace, h.eng.Fleet)
	t.Cleanup(func() { expect.Is(t, c.Close(), nil) })
	self := expect.Of(os.Executable())(t)
	h.know(t, tools.Server{Name: "hangs", Command: []string{self}, Env: map[string]string{"MCP_TEST_SERVER": "hangs", "HANGS": how}, CallTimeoutS: 1})
	return h
}

func TestAServerThatHangsInACallIsBegunAnew(t *testing.T) {
	h := impatient(t, "")
	life := func() string {
		_, r := h.ends(t, alice, "hangs", "begun", "{}")
		expect.Must(t, r.Status == task.Succeeded, "%+v", r.Error)
		return string(r.Output)
	}
	first := life()
	// The server itself goes on: only the call is over.
	_, r := h.ends(t, alice, "hangs", "slow", "{}")
	if r.Error == nil || r.Error.Code != "timeout" || r.Error.Retryable || !strings.Contains(r.Error.Message, "server hangs gave no answer to slow within 1s; it still answers others") {
		t.Errorf("%+v", r.Error)
	}
	expect.Is(t, life(), first, "it was begun anew")
	// It hears nothing any more.
	_, r = h.ends(t, alice, "hangs", "deaf", "{}")
	expect.True(t, r.Error != nil && r.Error.Code == "timeout" && !r.Error.Retryable && strings.Contains(r.Error.Message, "is begun anew"), "%+v", r.Error)
	now := life()
	expect.True(t, now != first, "%s: it is the same", now)
}

func TestAServerThatListsNoToolsIsBegunAnew(t *testing.T) {
	h := impatient(t, "list")
	for range 2 {
		expect.Says(t, expect.Fault(h.eng.Tools.List(t.Context(), lab, "hangs")), "did not list its tools within 8s, and is begun anew")
	}
}

func TestAPersonsTimeIsNotTheServers(t *testing.T) {
	h := impatient(t, "")
	tk, a := h.asking(t, "hangs", "ask", "{}")
	status := func() task.Status { return expect.Of(h.eng.Tasks.Get(t.Context(), lab, tk.TaskID))(t).Status }
	expect.StillFor(t, 1500*time.Millisecond, status, "for longer than the server has, the call")
	expect.Of(h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}))(t)
	r := h.over(t, tk)
	expect.True(t, r.Status == task.Succeeded && strings.Contains(string(r.Output), "asked"), "%s %+v", r.Output, r.Error)
}

func TestWhatAServerSaysThatIsNoMessageIsPassedOver(t *testing.T) {
	h := impatient(t, "")
	tk, r := h.ends(t, alice, "hangs", "babble", "{}")
	expect.Must(t, r.Status == task.Succeeded && strings.Contains(string(r.Output), "babbled"), "%s %+v", r.Output, r.Error)
	var said []string
	expect.Await(t, "the log", func() bool {
		lines, _, err := h.eng.Tasks.Log(t.Context(), lab, tk.TaskID, 0, 100)
		expect.No(t, err)
		said = said[:0]
		for _, l := range lines {
			said = append(said, l.Message)
		}
		return len(said) > 0
	})
	if all := strings.Join(said, "\n"); !strings.Contains(all, "server hangs said what is no message, which is passed over: Welcome!") || len(said) > 3 || strings.Contains(all, "\x1b") {
		t.Errorf("%q", said)
	}
}
