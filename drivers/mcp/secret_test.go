package mcp

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

func TestWhatAServerWasGivenIsMasked(t *testing.T) {
	var c *Client
	var late secret.Late
	h := newHouse(t, func(opt *engine.Options, sup *cell.Supervisor) {
		c = NewClient(sup, ClientOptions{State: t.TempDir(), Getenv: os.Getenv, Secrets: late.Resolve})
		opt.Tools, opt.Runners[Kind], opt.SecretKey = c, c.Runner(), filepath.Join(t.TempDir(), "key")
	})
	late.Open(h.eng.Secrets)
	c.Open(h.eng.Tools, h.eng.Trace, h.eng.Fleet)
	t.Cleanup(func() { _ = c.Close() })
	self := expect.Of(os.Executable())(t)
	_, _, err := h.eng.Secrets.Set(t.Context(), alice, "GIVEN", []byte("geheim-<value>"))
	expect.No(t, err)
	for _, value := range []string{"@GIVEN", "clear-value-1", "clear-value-2"} {
		h.know(t, tools.Server{Name: "actor", Command: []string{self}, Env: map[string]string{"MCP_TEST_SERVER": "1", "SECRET": value}})
		s := expect.Of(h.eng.Tools.Server(t.Context(), lab, "actor"))(t)
		name := secret.Reference(s.Env["SECRET"])
		tk, r := h.ends(t, alice, "actor", "list", "{}")
		expect.True(t, tk.Status == task.Succeeded && name != "" && strings.Contains(string(r.Output), "[secret "+name+"]"),
			"%s (%s): %s %s %+v", value, name, tk.Status, r.Output, r.Error)
	}
}

func TestMessagesAreMaskedOnceEscapesAreRead(t *testing.T) {
	mask := secret.NewMask(map[string]string{"S": "geheim"})
	var told []string
	text := "{\"jsonrpc\":\"2.0\",\"method\":\"\\u0067eheim\"}\nplain geheim\n{\"long\":\"" + strings.Repeat("x", maxFrame) + "\"}\n"
	got, err := io.ReadAll(messages(mask, io.NopCloser(iotest.HalfReader(strings.NewReader(text))), func(text string) { told = append(told, text) }))
	lines := bytes.Split(got, []byte("\n"))
	if err != nil || len(lines) != 3 || string(lines[0]) != `{"jsonrpc":"2.0","method":"[secret S]"}` || len(lines[1]) <= maxFrame ||
		len(told) != 1 || told[0] != "plain [secret S]" {
		t.Errorf("%v: %d lines, %.80q, told %q", err, len(lines), got, told)
	}
}
