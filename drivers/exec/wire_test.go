package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// plays is a shell script that notes its words and its input in the directory, and prints
// what a real program of that version did.
func plays(t *testing.T, dir, recording string, status int) string {
	t.Helper()
	path := expect.Of(filepath.Abs("testdata/" + recording))(t)
	stream := ""
	if strings.HasSuffix(recording, ".stderr") {
		stream = " >&2"
	}
	return fmt.Sprintf(`echo "$@" >>%[1]s/words; cat >>%[1]s/input; cat %[2]s%[3]s; exit %[4]d`, dir, path, stream, status)
}

// onWire opens an agent whose command is a script, on a wire.
func onWire(t *testing.T, r *Runtime, options, script string) (fleet.Handle, *watch) {
	t.Helper()
	w := &watch{}
	a := fleet.Agent{Name: "a", TenantID: "t_test", Profile: "open", Command: []string{"sh", "-c", script, "sh"}, Options: core.Raw(options)}
	expect.No(t, r.Check(fleet.Create{Name: a.Name, Command: a.Command, Options: a.Options}))
	h := expect.Of(r.Open(context.Background(), a, w.notify))(t)
	t.Cleanup(func() { expect.Is(t, h.Close(), nil) })
	return h, w
}

func wireRuntime(t *testing.T) *Runtime {
	t.Helper()
	return expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}))(t)
}

// heard are a turn's events but for its log, in words.
func heard(w *watch) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		switch e.Type {
		case "log":
		case "usage":
			all = append(all, fmt.Sprintf("usage %d=%d+%d $%.4f of %d/%d", e.Tokens, e.Split.Input, e.Split.Output, e.CostUSD, e.Context.Used, e.Context.Size))
		default:
			all = append(all, strings.Join(strings.Fields(strings.Join([]string{e.Type, e.CallID, e.Tool, e.Path, e.Text, string(e.Args), e.Status, string(e.Output), e.Error}, " ")), " "))
		}
	}
	return strings.Join(all, "\n")
}

func TestWhatRealProgramsPrintIsHeardAsIfByProtocol(t *testing.T) {
	for _, c := range []struct {
		recording string
		status    int
		outcome   string
		told      string
	}{
		{"claude-2.1.332-text.jsonl", 0, "succeeded: hello there", `mode its own permission mode is default {"mode":"default"}
message hello there
usage 120=100+20 $0.0000 of 120/0
usage 0=0+0 $0.0008 of 120/1000000`},
		{"claude-2.1.332-tools.jsonl", 0, "succeeded: FINAL: the tool said: File created successfully at: note.txt (file state is current in your context — no need to Read it back)", `mode its own permission mode is bypassPermissions {"mode":"bypassPermissions"}
tool_call call_2 Bash echo hi > out.txt {"command":"echo hi > out.txt"}
usage 120=100+20 $0.0000 of 120/0
tool_result call_2 Bash echo hi > out.txt ok {"output":"(Bash completed with no output)"}
tool_call call_3 Write note.txt {"file_path":"note.txt","content":"hello world"}
usage 120=100+20 $0.0000 of 120/0
diff call_3 note.txt note.txt @@ -0,0 +1 @@ +hello world \ No newline at end of file
tool_result call_3 Write note.txt ok {"output":"File created successfully at: note.txt (file state is current in your context — no need to Read it back)"}
message FINAL: the tool said: File created successfully at: note.txt (file state is current in your context — no need to Read it back)
usage 120=100+20 $0.0000 of 120/0
usage 0=0+0 $0.0024 of 120/1000000`},
		{"claude-2.1.332-json.json", 0, "succeeded: again", `message again
usage 120=100+20 $0.0008 of 0/1000000`},
		{"claude-2.1.332-resumed.jsonl", 0, "succeeded: again", `mode its own permission mode is default {"mode":"default"}
message again
usage 120=100+20 $0.0000 of 120/0
usage 0=0+0 $0.0008 of 120/1000000`},
		{"claude-2.1.332-login.jsonl", 1, "agent_login: the agent needs a login: Not logged in · Please run /login", `mode its own permission mode is default {"mode":"default"}`},
		{"claude-2.1.332-credit.jsonl", 0, "agent_limit: the agent is at a limit: Credit balance is too low", `mode its own permission mode is default {"mode":"default"}`},
		{"claude-2.1.332-retries.jsonl", 1, "agent_limit: the agent is at a limit: its model's API refuses: rate_limit (status 429); try 2 of 10 (the agent's process exited with status 1 without a result)", `mode its own permission mode is default {"mode":"default"}`},
		{"codex-0.171.0-text.jsonl", 0, "succeeded: hello there", `message hello there
usage 120=100+20 $0.0000 of 0/0`},
		{"codex-0.171.0-tools.jsonl", 0, "succeeded: FINAL: the tool said: Chunk ID: 53f061\nWall time: 0.0002 seconds\nProcess exited with code 2\nOriginal token count: 14\nOutput:\nls: cannot access '/nowhere': No such file or directory\n", `tool_call item_1 command_execution /bin/bash -lc 'echo hi > out.txt' {"command":"/bin/bash -lc 'echo hi > out.txt'"}
tool_result item_1 command_execution /bin/bash -lc 'echo hi > out.txt' ok {"exit_code":0}
tool_call item_2 file_change add /srv/repo/note.txt {"changes":[{"path":"/srv/repo/note.txt","kind":"add"}]}
tool_result item_2 file_change add /srv/repo/note.txt ok {}
tool_call item_3 command_execution /bin/bash -lc 'ls /nowhere' {"command":"/bin/bash -lc 'ls /nowhere'"}
tool_result item_3 command_execution /bin/bash -lc 'ls /nowhere' error {"exit_code":2,"output":"ls: cannot access '/nowhere': No such file or directory\n"} exit status 2
message FINAL: the tool said: Chunk ID: 53f061 Wall time: 0.0002 seconds Process exited with code 2 Original token count: 14 Output: ls: cannot access '/nowhere': No such file or directory
usage 480=400+80 $0.0000 of 0/0`},
		{"codex-0.171.0-login.jsonl", 0, "agent_login: the agent needs a login: unexpected status 401 Unauthorized: Incorrect API key provided: fake. You can find your API key at https://platform.openai.com/account/api-keys., url: http://127.0.0.1:8765/o401/v1/responses", ""},
		{"codex-0.171.0-limit.jsonl", 1, "agent_limit: the agent is at a limit: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again later.", ""},
		{"gemini-0.61.0-text.json", 0, "succeeded: hello there", `message hello there
usage 120=100+20 $0.0000 of 0/0`},
		{"gemini-0.61.0-tools.jsonl", 0, "succeeded: FINAL: the tool said: {\"output\":\"Successfully created and wrote to new file: /srv/repo/note2.txt. Here is the updated code:\\nhello world\"}", `tool_call run_shell_command__run_shell_command_1796018225388_0 run_shell_command echo hi > out2.txt {"command":"echo hi > out2.txt"}
tool_result run_shell_command__run_shell_command_1796018225388_0 run_shell_command echo hi > out2.txt ok {"output":""}
tool_call write_file__write_file_1796018225581_0 write_file note2.txt {"content":"hello world","file_path":"note2.txt"}
diff write_file__write_file_1796018225581_0 note2.txt note2.txt @@ -0,0 +1 @@ +hello world \ No newline at end of file
tool_result write_file__write_file_1796018225581_0 write_file note2.txt ok {"output":""}
message FINAL: the tool said: {"output":"Successfully created and wrote to new file: /srv/repo/note2.txt. Here is the updated code:\nhello world"}
usage 360=300+60 $0.0000 of 0/0`},
		{"gemini-0.61.0-limit.jsonl", 173, "agent_limit: the agent is at a limit: [API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method", ""},
		{"gemini-0.61.0-login.stderr", 144, "agent_login: the agent needs a login: API key not valid. Please pass a valid API key.", ""},
		{"gemini-0.61.0-nologin.stderr", 41, "agent_login: the agent needs a login: Please set an Auth method in your /srv/home/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GENAI_USE_GCA (the agent's process exited with status 41 without a result)", ""},
	} {
		t.Run(c.recording, func(t *testing.T) {
			dir := t.TempDir()
			name, _, _ := strings.Cut(c.recording, "-")
			h, w := onWire(t, wireRuntime(t), `{"wire":"`+name+`"}`, plays(t, dir, c.recording, c.status))
			out := ask(t, h, w.prompt("do it"))
			expect.Is(t, came(out), c.outcome)
			expect.Is(t, heard(w), c.told)
			expect.Is(t, out.Unsent, out.Error != nil && c.recording != "gemini-0.61.0-login.stderr", "it is known to have done nothing")
			expect.Is(t, string(expect.Of(os.ReadFile(dir+"/input"))(t)), "do it", "its input")
			l, lacks := w.last(), out.Error != nil // it does nothing more until somebody mends that
			expect.True(t, lacks == (l.Status == fleet.Failed) && lacks == (l.Trouble != nil) && strings.HasSuffix(c.outcome, l.Reason), "it is %+v", l)
		})
	}
}

// came is what an outcome says.
func came(out task.Outcome) string {
	if out.Error != nil {
		return out.Error.Code + ": " + out.Error.Message
	}
	return string(out.Status) + ": " + out.Text
}

const firstOfCodex, secondOfCodex = "codex-0.171.0-text.jsonl", "codex-0.171.0-resumed.jsonl"

// TestTheNextTaskGoesOnWithTheConversation has the real programs' second runs: their sums
// are of both, and the first is counted once.
func TestTheNextTaskGoesOnWithTheConversation(t *testing.T) {
	for name, c := range map[string]struct {
		first, second, words string
		cost                 float64
	}{
		"claude": {"claude-2.1.332-text.jsonl", "claude-2.1.332-resumed.jsonl", "--resume 1fbedbb4-dc5f-4be7-a6c9-a28aff5cfa00", 0.0016},
		"codex":  {firstOfCodex, secondOfCodex, "resume 01a22af4-d102-7e41-8fc0-2c07ef421864 -", 0},
	} {
		dir, r := t.TempDir(), wireRuntime(t)
		script := fmt.Sprintf("if [ $# = 0 ]; then %s; else %s; fi", plays(t, dir, c.first, 0), plays(t, dir, c.second, 0))
		options := `{"wire":"` + name + `"}`
		h, w := onWire(t, r, options, script)
		expect.Is(t, came(ask(t, h, w.prompt("one"))), "succeeded: hello there", name)
		expect.No(t, h.Close()) // another engine takes it up
		h, again := onWire(t, r, options, script)
		expect.Is(t, came(ask(t, h, again.prompt("two"))), "succeeded: again", name)
		expect.Is(t, string(expect.Of(os.ReadFile(dir+"/words"))(t)), "\n"+c.words+"\n", name)
		tokens, cost := int64(0), 0.0
		for _, e := range append(w.events, again.events...) {
			tokens, cost = tokens+e.Tokens, cost+e.CostUSD
		}
		expect.True(t, tokens == 240 && cost == c.cost, "%s: %d tokens, %g USD, want 240 and %g", name, tokens, cost, c.cost)

		h, w = onWire(t, r, `{"wire":"`+name+`","fresh":true}`, script)
		for range 2 {
			expect.Is(t, came(ask(t, h, w.prompt("three"))), "succeeded: hello there", name)
		}
	}
}

func TestAConversationThatIsGoneBeginsAnew(t *testing.T) {
	for name, c := range map[string]struct{ first, gone string }{
		"claude": {"claude-2.1.332-text.jsonl", "claude-2.1.332-gone.jsonl"},
		"codex":  {"codex-0.171.0-text.jsonl", "codex-0.171.0-gone.stderr"},
		"gemini": {"gemini-0.61.0-text.json", "gemini-0.61.0-gone.stderr"},
	} {
		dir := t.TempDir()
		h, w := onWire(t, wireRuntime(t), `{"wire":"`+name+`"}`, fmt.Sprintf("if [ $# = 0 ]; then %s; else %s; fi", plays(t, dir, c.first, 0), plays(t, dir, c.gone, 1)))
		for range 2 {
			expect.Is(t, came(ask(t, h, w.prompt("go"))), "succeeded: hello there", name)
		}
		expect.Is(t, len(lines(t, dir+"/words", 1)), len(wires[name].resume("x")), name, "one of three runs was to take it up")
		expect.Has(t, strings.Join(w.texts("log"), "\n"), "WARN the earlier conversation could not be taken up, a new one begins: ", name)
	}
}

func TestARunThatMayHaveActedIsNotRepeated(t *testing.T) {
	dir := t.TempDir()
	h, w := onWire(t, wireRuntime(t), `{"wire":"gemini"}`, fmt.Sprintf("if [ $# = 0 ]; then %s; else echo again >>%s/runs; exit 1; fi", plays(t, dir, "gemini-0.61.0-text.json", 0), dir))
	for _, want := range []string{"succeeded: hello there", "agent_exit: the agent's process exited with status 1 without a result", "succeeded: hello there"} {
		expect.Is(t, came(ask(t, h, w.prompt("go"))), want)
	}
	expect.Is(t, len(lines(t, dir+"/runs", 1)), 1, "runs that failed")
}

func TestWhatIsSaidMeanwhileIsTheNextPromptOfTheTask(t *testing.T) {
	dir := t.TempDir()
	h, w := onWire(t, wireRuntime(t), `{"wire":"codex"}`, fmt.Sprintf("if [ $# = 0 ]; then %s; else %s; fi", plays(t, dir, "codex-0.171.0-tools.jsonl", 0), plays(t, dir, "codex-0.171.0-tools.jsonl", 0)))
	expect.Err(t, h.(*agent).Hears(), fleet.ErrNextPrompt)
	p, told := w.prompt("one\n"), false
	p.URI = "https://example.com/issue"
	p.Next = func(context.Context) (*fleet.Message, error) {
		if told {
			return nil, nil
		}
		told = true
		return &fleet.Message{Text: "and two"}, nil
	}
	out := ask(t, h, p)
	expect.True(t, out.Status == task.Succeeded, "%+v", out)
	expect.Is(t, string(expect.Of(os.ReadFile(dir+"/input"))(t)), "one\n\n\nhttps://example.com/issueand two")
	expect.Is(t, strings.Join(w.texts("prompt"), "|"), "and two")
	ids := map[string]bool{}
	for _, e := range w.events {
		if e.Type == "tool_call" {
			ids[e.CallID] = true
		}
	}
	expect.Is(t, len(ids), 6, "calls, of which each process calls its first item_1:", ids)
}

func TestWhatNoReaderKnowsIsKeptAsALine(t *testing.T) {
	for name, c := range map[string]struct{ printed, outcome, told, log string }{
		"codex": {`{"type":"thread.started","thread_id":"--evil","more":{"a":1}}
{"type":"hologram","text":"?"}
{"type":"item.completed","item":{"id":"x","type":"agent_message","text":7}}
{"type":"turn.started"
plain
{
[1,{"type":"error","message":"half"}]
{"type":"item.completed","item":{"id":"i","type":"hologram","query":"q","status":"declined","error":{"message":"no"}}}
{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"half a pair: \ud83d"}}
{"type":"item.started","item":{"id":"j","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"path":"p"}}}
{"type":"item.updated","item":{"id":"k","type":"todo_list","items":[{"text":"a","completed":true},{"text":"b"}]}}
` + strings.Repeat("x", maxWireLine+10) + `
{"type":"turn.completed","usage":{"input_tokens":-5,"output_tokens":1}}
`, "succeeded: half a pair: \uFFFD", `tool_call i hologram q {"query":"q"}
tool_result i hologram q error {} no
message half a pair: �
tool_call j s.t p {"arguments":{"path":"p"},"server":"s","tool":"t"}
plan [x] a [ ] b
tool_result j s.t p error {} the agent told no end of it`, `DEBUG told: {"type":"hologram","text":"?"}
DEBUG told: {"type":"item.completed","item":{"id":"x","type":"agent_message","text":7}}
WARN malformed: {"type":"turn.started"
INFO plain
WARN malformed: {
DEBUG told: 1
WARN half
WARN ` + strings.Repeat("x", 85)},
		"gemini": {`{
 "session_id": "s",
 "response": ["?"]
}
{"type":"message","role":"assistant","content":"one","delta":true}
{"type":"message","role":"assistant","content":" two","delta":true}
{
 "half": 1,
`, "agent_protocol: the agent's process exited with status 0 without a result; its wire is read as `gemini -o stream-json` prints it", "message one two", `DEBUG told: { "session_id": "s", "response": ["?"]}
WARN malformed: { "half": 1,`},
		"claude": {`{"type":"system","subtype":"init","session_id":7}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour"}}
{"type":"result","subtype":"error_max_turns","session_id":"s"}
`, "agent_limit: the agent is at a limit: error_max_turns", "", `DEBUG told: {"type":"system","subtype":"init","session_id":7}
WARN rate limit five_hour: rejected`},
	} {
		file := t.TempDir() + "/printed"
		expect.No(t, os.WriteFile(file, []byte(c.printed), 0o600))
		h, w := onWire(t, wireRuntime(t), `{"wire":"`+name+`"}`, "cat >/dev/null; cat "+file)
		expect.Is(t, came(ask(t, h, w.prompt("go"))), c.outcome, name)
		expect.Is(t, heard(w), c.told, name)
		log := w.texts("log")
		for i := range log {
			log[i] = log[i][:min(len(log[i]), 90)]
		}
		expect.Is(t, strings.Join(log, "\n"), c.log, name)
	}
}

func TestACancelEndsTheRunAndWhatItHadBegun(t *testing.T) {
	h, w := onWire(t, wireRuntime(t), `{"wire":"codex"}`, `cat >/dev/null; echo '{"type":"item.started","item":{"id":"i","type":"command_execution","command":"x"}}'; sleep 300`)
	over := expect.Later(func() task.Outcome { return ask(t, h, w.prompt("go")) })
	expect.Await(t, "its call runs", func() bool { return len(w.texts("tool_call")) == 1 })
	h.Interrupt()
	out := <-over
	expect.True(t, out.Status == task.Cancelled, "%+v", out)
	expect.Is(t, heard(w), "tool_call i command_execution x {\"command\":\"x\"}\ntool_result i command_execution x error {} the agent told no end of it")
}

func TestAWireIsOneOfThoseThatAreRead(t *testing.T) {
	r := wireRuntime(t)
	for options, field := range map[string]string{
		`{"wire":"aider"}`: "options.wire", `{"wire":"claude","interrupt":"x"}`: "options.interrupt", `{"fresh":true}`: "options.fresh",
	} {
		e := core.AsError(r.Check(fleet.Create{Command: sh("true"), Options: core.Raw(options)}))
		expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == field, "%s: %v, want INVALID_INPUT naming %s", options, e, field)
	}
	for name := range wires {
		expect.No(t, r.Check(fleet.Create{Command: sh("true"), Options: core.Raw(`{"wire":"` + name + `"}`)}))
	}
}

func FuzzWires(f *testing.F) {
	recordings := expect.Of(filepath.Glob("testdata/*"))(f)
	for _, path := range recordings {
		f.Add(expect.Of(os.ReadFile(path))(f))
	}
	f.Fuzz(func(t *testing.T, printed []byte) {
		for name, wire := range wires {
			h := wire.hear(func(e fleet.Event) {
				for _, v := range []core.Raw{e.Args, e.Output} {
					expect.Must(t, v == nil || v.IsValid(), "%s: %q is no JSON", name, v)
				}
				for _, s := range []string{e.Text, e.Error, e.Path} {
					expect.Must(t, len(s) <= maxLogLine+8, "%s: %d bytes", name, len(s))
				}
				expect.Must(t, e.Tokens >= 0 && e.CostUSD >= 0, "%s: %d tokens, %g USD", name, e.Tokens, e.CostUSD)
			}, conversation{}, "")
			for i, line := range bytes.Split(printed, []byte("\n")) {
				h.line(i%7/6, line)
			}
			h.end()
			_, err := h.outcome(cell.Exit{}, "").Checked()
			expect.No(t, err)
		}
	})
}

func TestALongMessageInPiecesIsWholeInTheResult(t *testing.T) {
	said := 0
	h := wires["gemini"].hear(func(e fleet.Event) { said += len(e.Text) }, conversation{}, "")
	piece := strings.Repeat("x", 1000)
	for range 200 {
		h.line(0, []byte(`{"type":"message","role":"assistant","delta":true,"content":"`+piece+`"}`))
	}
	h.line(0, []byte(`{"type":"result","status":"success"}`))
	h.end()
	expect.Is(t, len(h.outcome(cell.Exit{}, "").Text), 200_000, "bytes of the result")
	expect.Is(t, said, 200_000, "bytes that were said")
}
