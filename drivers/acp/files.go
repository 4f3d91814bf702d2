package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin/named"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/safeopen"
)

// Bounds, in bytes, of a file that is read or written for an agent, and of the
// answer that carries it: what waits for an agent that reads slowly is bounded.
const (
	maxFile   = 4 << 20
	maxAnswer = 6 << 20
)

// dir is the agent's directory without symbolic links in its path, so that an
// agent that resolves them finds itself within.
func (p place) dir() string {
	if real, err := filepath.EvalSymlinks(p.spec.Dir); err == nil {
		return real
	}
	return p.spec.Dir
}

// within is the path relative to the agent's directory. Names alone can't tell
// where links lead: what opens it must not follow them out.
func (p place) within(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return "", core.Invalid("path", path, "an absolute path")
	}
	for _, dir := range []string{p.dir(), p.spec.Dir} {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", core.Invalid("path", path, "a path within "+p.spec.Dir)
}

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
		_, err := t.s.a.place.within(in.Path)
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
func (t *turn) bindWritten(args core.Raw) []judge.File { return t.bindPaths(judge.Written(args)) }

func (t *turn) bindPaths(paths []string) []judge.File {
	p, argv := t.s.a.place, []string{"tee"}
	for _, path := range paths {
		if rel, err := p.within(path); err == nil {
			argv = append(argv, rel)
		}
	}
	if len(argv) == 1 {
		return nil
	}
	return t.s.a.r.opt.Pins.Look(t.s.a.rec.TenantID, named.Line{Argv: argv, Dir: p.dir()})
}

// ours is a question about something that we do for the agent.
func (t *turn) ours(tool string, args core.Raw, intent, risk string) fleet.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[tool]++
	return fleet.Event{
		Type: "tool_request", CallID: fmt.Sprintf("%s#%d", tool, t.asked[tool]), Tool: tool, Args: args, Intent: intent, Risk: risk, Ours: true,
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
	err = p.at(in.Path, func(at *safeopen.Place) error {
		text, err = readWhole(at)
		return err
	})
	if err != nil {
		return "", err
	}
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

// at works on a place in the agent's directory.
func (p place) at(path string, work func(*safeopen.Place) error) error {
	rel, err := p.within(path)
	if err != nil {
		return err
	}
	hidden, err := p.sup.Hidden(p.spec, filepath.Join(p.dir(), rel))
	if err == nil && hidden {
		err = fmt.Errorf("%s is hidden: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	root, err := p.own.Root(p.spec.Dir)
	if err != nil {
		return fmt.Errorf("open the agent's directory: %w", err)
	}
	defer root.Close()
	return root.At(rel, work)
}

func readWhole(at *safeopen.Place) (string, error) {
	data, _, err := at.Read(maxFile)
	if errors.Is(err, safeopen.ErrTooLarge) {
		err = core.Errorf(core.InvalidInput, "the file has more than %d bytes", maxFile)
	}
	return string(data), err
}

// writeText replaces a file in the agent's directory as a whole, and returns
// what was in it. A link is not written through: what was asked for names the
// file that changes.
func (p place) writeText(in fileRequest) (old string, err error) {
	if len(*in.Content) > maxFile {
		return "", core.Errorf(core.InvalidInput, "content has more than %d bytes", maxFile)
	}
	if p.spec.Wall.Profile == cell.Reader {
		return "", core.Errorf(core.Denied, "a reader writes no files")
	}
	err = p.at(in.Path, func(at *safeopen.Place) error {
		if old, err = readWhole(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err = at.Put([]byte(*in.Content), func(f *os.File) error {
			if u := p.spec.User; u != nil {
				return f.Chown(int(u.UID), int(u.GID))
			}
			return nil
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	return old, nil
}
