package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/workdir"
	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/judge/edits"
	"swarmdeck/engine/safeopen"
)

// maxAnswer bounds, in bytes, the answer that carries a file: what waits for an agent
// that reads slowly is bounded.
const maxAnswer = 6 << 20

// fileRequest is a request to read or write a text file.
type fileRequest struct {
	Path    string  `json:"path"`
	Content *string `json:"content,omitzero"` // to write
	Line    *int    `json:"line,omitzero"`    // to read from, the first is 1
	Limit   *int    `json:"limit,omitzero"`   // lines to read
}

func (t *turn) readFile(r *jsonrpc.Request) {
	t.file(r, "fs/read_text_file", "low", func(_ string, in fileRequest) (any, error) {
		text, err := t.s.a.place.readText(in)
		answer := acp.ReadTextFileResponse{Content: text}
		if err == nil && len(core.MustEncode(answer)) > maxAnswer {
			err = core.Errorf(core.InvalidInput, "%s does not fit into one answer: read it in parts, by line and limit", in.Path)
		}
		return answer, err
	})
}

func (t *turn) writeFile(r *jsonrpc.Request) {
	t.file(r, "fs/write_text_file", "medium", func(id string, in fileRequest) (any, error) {
		old, err := t.s.a.place.writeText(in)
		if err == nil {
			t.emit(fleet.Event{Type: "diff", CallID: id, Path: core.ClipTo(in.Path, 2048), Text: core.ClipTo(diff.Unified(in.Path, old, *in.Content, maxLogLine), maxLogLine)})
		}
		return acp.WriteTextFileResponse{}, err
	})
}

// file serves a request on a file once the judge has approved it, with the
// arguments that were approved.
func (t *turn) file(r *jsonrpc.Request, tool, risk string, act func(id string, in fileRequest) (any, error)) {
	var in fileRequest
	check := func(data core.Raw) error {
		in = fileRequest{}
		if err := jsonrpc.Decode(data, &in); err != nil {
			return core.Errorf(core.InvalidInput, "%s: %v", tool, err)
		}
		if (in.Content != nil) != (tool == "fs/write_text_file") {
			return core.Errorf(core.InvalidInput, "%s: content is missing or not wanted", tool)
		}
		_, err := t.s.a.place.machine().Within(in.Path)
		return err
	}
	if err := check(r.Params); err != nil {
		t.emit(fleet.Event{Type: "log", Level: "WARN", Text: "refused: " + err.Error()})
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "%v", err))
		return
	}
	e := t.ours(tool, core.MustEncode(in), tool[3:strings.IndexByte(tool, '_')]+" "+in.Path, risk)
	if in.Content != nil {
		e.Bind = t.bindFile
	}
	t.ask(e, func(ans fleet.ToolAnswer) {
		if !granted(r, ans) {
			return
		}
		var result any
		err := check(ans.Args)
		if err == nil {
			result, err = act(e.CallID, in)
		}
		t.told(e, err)
		if err != nil {
			r.Fail(fileError(err))
			return
		}
		r.Reply(result)
	})
}

// bindFile finds the file that a request writes, as it is before: who is asked sees how
// it would change, and an answer holds for that alone.
func (t *turn) bindFile(args core.Raw) []judge.File {
	var in fileRequest
	if err := jsonrpc.Decode(args, &in); err != nil {
		return nil
	}
	return t.bindPaths([]string{in.Path})
}

// bindWritten is bindFile for what the agent writes by itself.
func (t *turn) bindWritten(args core.Raw) []judge.File { return t.bindPaths(edits.Written(args)) }

func (t *turn) bindPaths(paths []string) []judge.File {
	at, argv := t.s.a.place.machine(), []string{"tee"}
	for _, path := range paths {
		if rel, err := at.Within(path); err == nil {
			argv = append(argv, rel)
		}
	}
	if len(argv) == 1 {
		return nil
	}
	return at.Look(cell.Spec{Argv: argv, Dir: at.Real(), Whose: t.s.a.place.Spec.Whose})
}

// ours is a question about something that we do for the agent.
func (t *turn) ours(tool string, args core.Raw, intent, risk string) fleet.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[tool]++
	return fleet.Event{
		Type: "tool_request", CallID: fmt.Sprintf("%s#%d", tool, t.asked[tool]), Tool: tool, Args: args, Intent: intent, Risk: risk, Ours: true, Cell: t.s.cell(),
	}
}

// told reports what came of something that we did for the agent.
func (t *turn) told(e fleet.Event, err error) {
	out := fleet.Event{Type: "tool_result", CallID: e.CallID, Tool: e.Tool, Status: "ok"}
	if err != nil {
		out.Status, out.Error = "error", err.Error()
	}
	t.emit(out)
}

// granted answers the request itself when it was not approved.
func granted(r *jsonrpc.Request, ans fleet.ToolAnswer) bool {
	switch ans.Decision {
	case "approve":
		return true
	case "":
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidRequest, "the task is over"))
	default:
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidRequest, "denied by the operator: %s", ans.Reason))
	}
	return false
}

// resourceNotFound is the protocol's code for a file that is not there.
const resourceNotFound = -32002

func fileError(err error) *jsonrpc.Error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return jsonrpc.Errorf(resourceNotFound, "%v", err)
	case errors.Is(err, core.Kind(core.InvalidInput)):
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "%v", err)
	}
	return jsonrpc.Errorf(jsonrpc.InternalError, "%v", err)
}

// readText reads lines of a file in the agent's directory. No link is followed,
// whatever changes meanwhile.
func (p place) readText(in fileRequest) (text string, err error) {
	data, err := p.machine().Read(in.Path, workdir.MaxFile)
	if errors.Is(err, safeopen.ErrTooLarge) {
		err = workdir.TooLarge()
	}
	if err != nil {
		return "", err
	}
	text = string(data)
	if strings.ToValidUTF8(text, "") != text {
		return "", core.Errorf(core.InvalidInput, "%s is no UTF-8 text", in.Path)
	}
	if in.Line == nil && in.Limit == nil {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	if in.Line != nil {
		lines = lines[min(max(*in.Line-1, 0), len(lines)):]
	}
	if in.Limit != nil {
		lines = lines[:min(max(*in.Limit, 0), len(lines))]
	}
	return strings.Join(lines, ""), nil
}

// writeText replaces a file in the agent's directory as a whole, and returns
// what was in it.
func (p place) writeText(in fileRequest) (old string, err error) {
	data, err := p.machine().Write(in.Path, []byte(*in.Content))
	return string(data), err
}

// Bounds of what a prompt carries of files, in bytes. Of a larger one it carries the link.
const (
	maxTrim    = 8 // bytes that may end a sentence after a path
	maxCarried = 256 << 10
	maxCarry   = 1 << 20 // of all files of a prompt
)

var _ fleet.Attacher = (*Runtime)(nil)

func (r *Runtime) Attaches(a fleet.Agent, path string) error {
	p, err := r.placeOf(a)
	if err == nil && p.there != nil {
		err = p.there.learn()
	}
	if err != nil {
		return err
	}
	_, _, err = p.attached(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Invalid("attach", path, "a file within "+p.Spec.Dir)
	case err != nil:
		return core.Errorf(core.InvalidInput, "attach: %q can't be attached: %v", path, err).With("field", "attach").With("value", path)
	}
	return nil
}

// attached finds a file that a message mentions: where it is, and what is in it, unless
// that is more than a prompt carries or no text. No link is followed.
func (p place) attached(path string) (full, text string, err error) {
	if filepath.IsAbs(path) || !filepath.IsLocal(path) {
		return "", "", core.Errorf(core.InvalidInput, "it is not named by its path within %s", p.Spec.Dir)
	}
	at := p.machine()
	full = filepath.Join(at.Real(), path)
	data, err := at.Read(full, maxCarried)
	if errors.Is(err, safeopen.ErrTooLarge) {
		return full, "", nil
	}
	if err == nil && utf8.Valid(data) && !strings.ContainsRune(string(data), 0) {
		text = string(data)
	}
	return full, text, err
}

// attachments are the blocks of the files that a prompt mentions, and a line for the log.
// What names no file is text.
func (s *session) attachments(text string) (blocks []acp.ContentBlock, e fleet.Event) {
	var said []string
	carry := maxCarry
	e = fleet.Event{Type: "log", Level: "INFO"}
	for _, path := range fleet.Mentions(text) {
		if len(blocks) == fleet.MaxAttached {
			e.Level = "WARN"
			said = append(said, fmt.Sprintf("%s and what follows are not attached: there are %d files already", path, fleet.MaxAttached))
			break
		}
		full, content, err := s.a.place.attached(path)
		for trim := 0; trim < maxTrim && err != nil && strings.ContainsRune(".,;:!?)]}>'\"`", rune(path[len(path)-1])) && len(path) > 1; trim++ {
			path = path[:len(path)-1] // it may end a sentence
			full, content, err = s.a.place.attached(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			e.Level = "WARN"
			said = append(said, fmt.Sprintf("%s can't be attached: %v", path, err))
			continue
		}
		uri := (&url.URL{Scheme: "file", Path: full}).String()
		if content == "" || len(content) > carry || string(s.pe.can.AgentCapabilities.PromptCapabilities.EmbeddedContext) != "true" {
			blocks = append(blocks, acp.ResourceLinkBlock(filepath.Base(path), uri))
			said = append(said, "attached "+path+" by its name")
			continue
		}
		carry -= len(content)
		blocks = append(blocks, acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: uri, Text: content}}))
		said = append(said, fmt.Sprintf("attached %s, %d bytes", path, len(content)))
	}
	e.Text = core.ClipTo(strings.Join(said, "\n"), maxLogLine)
	return blocks, e
}
