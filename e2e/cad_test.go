package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// cadProcess is the program's CAD environment at the other end of two pipes.
type cadProcess struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	n   int
}

// ask carries out one method and answers its data.
func (c *cadProcess) ask(method, params string) map[string]any {
	c.t.Helper()
	c.n++
	expect.Of(fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.n, method, params))(c.t)
	line := expect.Of(c.out.ReadString('\n'))(c.t)
	var r struct {
		ID     int `json:"id"`
		Result struct {
			Data map[string]any `json:"data"`
		} `json:"result"`
		Error core.Raw `json:"error"`
	}
	err := core.DecodeStored([]byte(line), &r)
	expect.Must(c.t, err == nil && r.ID == c.n && r.Error == nil, "%s: %s (%v)", method, line, err)
	return r.Result.Data
}

func TestTheProgramServesCADByPipe(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	cmd := u.command("cad", "env", "--dir", u.home)
	in := expect.Of(cmd.StdinPipe())(t)
	out := expect.Of(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	expect.No(t, cmd.Start())
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	c := &cadProcess{t: t, in: in, out: bufio.NewReader(out)}
	expect.Row(t, c.ask("system.hello", "{}"), "kernel", "embedded")
	c.ask("solid.primitive", `{"entity_id":"a","primitive_type":"box","width":10,"depth":10,"height":10}`)
	c.ask("solid.primitive", `{"entity_id":"b","primitive_type":"cylinder","radius":3,"height":10,"axis_point":[5,5,0]}`)
	cut := c.ask("solid.boolean", `{"operation":"subtract","entity_ids":["a","b"]}`)
	v := cut["volume"].(float64)
	expect.True(t, v >= 717 && v <= 720, "%v", cut)
	c.ask("file.export", `{"file_path":"part.step"}`)
	data, err := os.ReadFile(filepath.Join(u.home, "part.step"))
	expect.True(t, err == nil && strings.HasPrefix(string(data), "ISO-10303-21;"), "%.40s: %v", data, err)
	expect.No(t, in.Close())
	rest, err := io.ReadAll(c.out)
	expect.True(t, err == nil && len(rest) == 0, "%s: %v", rest, err)
	expect.No(t, cmd.Wait())
	expect.Fails(t, expect.Fault(os.Stat(u.data())), "it opened a data file")
}

func TestTheCADEnvironmentRefusesWhatItCanNotServe(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, tt := range []struct {
		code int
		text string
		args []string
	}{
		{2, "kernel", []string{"--kernel", "other"}},
		{2, "tolerance", []string{"--tolerance", "100"}},
		{1, "directory", []string{"--dir", "nowhere"}},
	} {
		code, out, stderr := u.run(append([]string{"cad", "env"}, tt.args...)...)
		expect.True(t, code == tt.code && out == "" && strings.Contains(stderr, tt.text), "%v: exit %d, %q %q", tt.args, code, out, stderr)
	}
}
