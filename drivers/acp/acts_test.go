package acp

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// acts are what the fake agent does beside the acts of drivertest:
//
//	raw UPDATE          sends the update as it stands
//	later PIPE UPDATE   sends the update once the named pipe has been written to
//	wire LINE           writes the line as it stands
//	huge                answers the prompt with more than is read
//	read PATH           fs/read_text_file, then says what it got
//	choose KIND …       asks for permission with options of these kinds, o0, o1, …
//	elicit NAME         elicitation/create for a text of that name
//	write PATH TEXT     fs/write_text_file, then says ok or the error
//	run COMMAND         a terminal: says its output and exit code
//	leave COMMAND       a terminal that is not waited for
//	chdir DIR           where it starts programs
//	stop REASON         the stop reason of the prompt
//	tokens N            the usage of the answer, as the session's sum
//	quota IN OUT        the usage of the answer, as its own
//	settings            says which mode and model it was set to
//	twice               asks two times about one call
//	model SESSION       asks its model, in a session: "mine", another or none
func (s *stage) acts(end *acp.PromptResponse) map[string]func(string) {
	say := func(what string, err error) {
		if err != nil {
			what = "error: " + err.Error()
		}
		s.Say(what)
	}
	terminal := func(line string) (acp.CreateTerminalResponse, error) {
		words := strings.Fields(line)
		return s.f.conn.CreateTerminal(s.ctx, acp.CreateTerminalRequest{SessionId: s.id, Command: words[0], Args: words[1:]})
	}
	return map[string]func(string){
		"raw": func(arg string) { s.f.raw(s.id, arg) },
		"later": func(arg string) {
			pipe, update, _ := strings.Cut(arg, " ")
			go func() {
				if _, err := os.ReadFile(pipe); err == nil {
					s.f.raw(s.id, update)
				}
			}()
		},
		"settings": func(string) {
			s.f.mu.Lock()
			what := "mode " + s.f.mode + " model " + s.f.model
			s.f.mu.Unlock()
			s.Say(what)
		},
		"wire": func(arg string) { _, _ = s.f.out.Write([]byte(arg + "\n")) },
		"huge": func(string) {
			_, _ = fmt.Fprintf(s.f.out, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"x":%q}}}`+"\n", strings.Repeat("z", 11<<20))
		},
		"read": func(path string) {
			r, err := s.f.conn.ReadTextFile(s.ctx, acp.ReadTextFileRequest{SessionId: s.id, Path: path})
			say("read "+r.Content, err)
		},
		"choose": func(arg string) { // kinds of the options, of which the ids are o0, o1, …
			var options []acp.PermissionOption
			for i, kind := range strings.Fields(arg) {
				options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKind(kind), Name: "Way " + kind, OptionId: acp.PermissionOptionId(fmt.Sprintf("o%d", i))})
			}
			r, err := s.f.conn.RequestPermission(s.ctx, acp.RequestPermissionRequest{SessionId: s.id, Options: options, ToolCall: acp.ToolCallUpdate{
				ToolCallId: acp.ToolCallId(fmt.Sprintf("choice-%d", s.next())), Title: acp.Ptr("How to go on"), Kind: acp.Ptr(acp.ToolKindExecute), RawInput: map[string]any{"command": "make"},
			}})
			if r.Outcome.Selected != nil {
				say("chose "+string(r.Outcome.Selected.OptionId), err)
				return
			}
			say("chose nothing", err)
		},
		"elicit": func(property string) {
			p := acp.NewUnstableCreateElicitationRequestForm(acp.UnstableElicitationSchema{
				Type: acp.UnstableElicitationSchemaTypeObject, Properties: map[string]any{property: map[string]any{"type": "string"}}, Required: []string{property},
			})
			p.Form.Message = "What is it?"
			r, err := s.f.conn.UnstableCreateElicitation(s.ctx, p)
			switch {
			case r.Accept != nil:
				say(fmt.Sprintf("told %v", r.Accept.Content), err)
			case r.Decline != nil:
				say("declined", err)
			default:
				say("cancelled", err)
			}
		},
		"write": func(arg string) {
			path, text, _ := strings.Cut(arg, " ")
			_, err := s.f.conn.WriteTextFile(s.ctx, acp.WriteTextFileRequest{SessionId: s.id, Path: path, Content: text})
			say("written", err)
		},
		"run": func(line string) {
			term, err := terminal(line)
			if err != nil {
				say("", err)
				return
			}
			id := term.TerminalId
			exit, err := s.f.conn.WaitForTerminalExit(s.ctx, acp.WaitForTerminalExitRequest{SessionId: s.id, TerminalId: id})
			out, bad := s.f.conn.TerminalOutput(s.ctx, acp.TerminalOutputRequest{SessionId: s.id, TerminalId: id})
			if err == nil && bad == nil && exit.ExitCode != nil {
				_, err = s.f.conn.ReleaseTerminal(s.ctx, acp.ReleaseTerminalRequest{SessionId: s.id, TerminalId: id})
				say(fmt.Sprintf("exit %d: %s", *exit.ExitCode, strings.TrimSpace(out.Output)), err)
				return
			}
			say(fmt.Sprintf("%v %v", err, bad), nil)
		},
		"leave": func(line string) {
			_, err := terminal(line)
			say("left", err)
		},
		"chdir": func(dir string) { _ = os.Chdir(dir) },
		"stop":  func(reason string) { end.StopReason = acp.StopReason(reason) },
		"tokens": func(n string) {
			total, _ := strconv.Atoi(n)
			end.Usage = &acp.Usage{TotalTokens: total}
		},
		"quota": func(arg string) {
			in, out, _ := strings.Cut(arg, " ")
			i, _ := strconv.Atoi(in)
			o, _ := strconv.Atoi(out)
			end.Meta = map[string]any{"quota": map[string]any{"token_count": map[string]any{"input_tokens": i, "output_tokens": o}}}
		},
		"model": func(session string) {
			req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/v1/chat/completions",
				strings.NewReader(`{"model":"m-1","messages":[{"role":"user","content":"SAY: hello"}]}`))
			if err != nil {
				say("", err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
			if session == "mine" {
				session = string(s.id)
			}
			if session != "" {
				req.Header.Set("Session_id", session)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				say("", err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			say("asked "+res.Status, nil)
		},
		"twice": func(string) {
			for range 2 {
				r, err := s.f.conn.RequestPermission(s.ctx, acp.RequestPermissionRequest{
					SessionId: s.id, Options: []acp.PermissionOption{{Kind: acp.PermissionOptionKindAllowOnce, Name: "y", OptionId: "yes"}},
					ToolCall: acp.ToolCallUpdate{ToolCallId: "same"},
				})
				say(fmt.Sprintf("asked %v", r.Outcome.Selected != nil), err)
			}
			s.f.raw(s.id, `{"sessionUpdate":"tool_call_update","toolCallId":"same","status":"completed","rawOutput":"done"}`)
		},
	}
}
