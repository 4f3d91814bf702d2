package acp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/fleet"
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
			t.emit(fleet.Event{Type: "diff", CallID: id, Path: clip(in.Path, 2048), Text: clip(diff.Unified(in.Path, old, *in.Content, maxLogLine), maxLogLine)})
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

// ours is a question about something that we do for the agent.
func (t *turn) ours(tool string, args core.Raw, intent, risk string) fleet.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[tool]++
	return fleet.Event{
		Type: "tool_request", CallID: fmt.Sprintf("%s#%d", tool, t.asked[tool]), Tool: tool, Args: args, Intent: intent, Risk: risk,
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

// readText reads lines of a file in the agent's directory. No link leads out
// of it, whatever changes meanwhile.
func (p place) readText(in fileRequest) (string, error) {
	root, rel, err := p.root(in.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, _, err := readRegular(root, rel)
	if err != nil {
		return "", err
	}
	text := string(data)
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

func (p place) root(path string) (*os.Root, string, error) {
	rel, err := p.within(path)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(p.spec.Dir)
	if err != nil {
		return nil, "", fmt.Errorf("open the agent's directory: %w", err)
	}
	return root, rel, nil
}

// readRegular reads a whole regular file; a pipe or device would hold us up.
func readRegular(root *os.Root, rel string) ([]byte, fs.FileInfo, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, core.Errorf(core.InvalidInput, "%s is no regular file", rel)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = core.Errorf(core.InvalidInput, "%s has more than %d bytes", rel, maxFile)
	}
	return data, info, err
}

// writeText replaces a file in the agent's directory as a whole, and returns
// what was in it.
func (p place) writeText(in fileRequest) (old string, err error) {
	if len(*in.Content) > maxFile {
		return "", core.Errorf(core.InvalidInput, "content has more than %d bytes", maxFile)
	}
	root, rel, err := p.root(in.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	// A link within the directory is written through, as an editor would.
	if target, err := root.Readlink(rel); err == nil && !filepath.IsAbs(target) {
		if to := filepath.Join(filepath.Dir(rel), target); filepath.IsLocal(to) {
			rel = to
		}
	}
	before, info, err := readRegular(root, rel)
	perm := fs.FileMode(0o644)
	switch {
	case err == nil:
		old, perm = string(before), info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	next := rel + ".swarmdeck-new"
	f, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		_ = root.Remove(next)
		f, err = root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(*in.Content)
	if u := p.spec.User; err == nil && u != nil {
		err = f.Chown(int(u.UID), int(u.GID))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = root.Rename(next, rel)
	}
	if err != nil {
		_ = root.Remove(next)
		return "", fmt.Errorf("write %s: %w", in.Path, err)
	}
	return old, nil
}
