package judge

import (
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
)

// maxChanges bounds the changes of files that are read in one action.
const maxChanges = 50

// Change is what an action would do to one file.
type Change struct {
	Path string `json:"path"`
	Diff string `json:"diff"`           // unified, below the file's name
	Note string `json:"note,omitempty"` // what it is not told against
}

// The names that tools give the parts of a change.
var (
	namePath  = []string{"path", "file_path", "filePath", "file", "filename"}
	nameWhole = []string{"content", "contents", "file_text", "text", "newContent", "new_content"}
	nameOld   = []string{"oldText", "old_string", "old_str", "old_text", "oldString", "search"}
	nameNew   = []string{"newText", "new_string", "new_str", "new_text", "newString", "replace"}
	namePatch = []string{"patch", "diff"}
)

// changes reads what an action would do to files in its arguments: texts that take
// each other's place, whole new contents, patches. kept tells what a file holds now.
func (a *Action) changes(kept func(path string) (string, bool)) []Change {
	var args map[string]any
	if json.Unmarshal(a.Args, &args) != nil {
		return nil
	}
	var out []Change
	left := maxShownAll
	put := func(path, text, note string) {
		if text = core.ClipTo(text, min(left, maxShown)); text != "" && len(out) < maxChanges {
			left -= len(text)
			out = append(out, Change{path, text, note})
		}
	}
	var look func(in map[string]any, path string, depth int)
	look = func(in map[string]any, path string, depth int) {
		if p, ok := firstText(in, namePath); ok && p != "" {
			path = p
		}
		if patch, ok := firstText(in, namePatch); ok && strings.Contains(patch, "\n@@") {
			put(path, patch, "as it was given")
		}
		before, replaced := firstText(in, nameOld)
		after, given := firstText(in, nameNew)
		whole, written := firstText(in, nameWhole)
		switch {
		case path == "":
		case replaced && given:
			put(path, diff.Unified(path, before, after, maxShown), "")
		case given: // of a file that is not there yet
			put(path, diff.Unified(path, "", after, maxShown), "")
		case written:
			now, ok := kept(path)
			note := ""
			if !ok {
				note = "what the file holds now is not known here"
			}
			put(path, diff.Unified(path, now, whole, maxShown), note)
		}
		if depth == maxDepth {
			return
		}
		for _, key := range []string{"input", "args", "params", "diffs", "edits", "changes", "files"} {
			switch v := in[key].(type) {
			case map[string]any:
				look(v, path, depth+1)
			case []any:
				for _, e := range v {
					if m, ok := e.(map[string]any); ok {
						look(m, path, depth+1)
					}
				}
			}
		}
	}
	look(args, "", 0)
	return out
}

// firstText is the first of some members that is a text.
func firstText(in map[string]any, names []string) (string, bool) {
	for _, name := range names {
		if v, ok := in[name].(string); ok {
			return v, true
		}
	}
	return "", false
}
