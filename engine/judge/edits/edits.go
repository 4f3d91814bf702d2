// Package edits reads what an action would do to files, in the arguments that tools
// give it and in the patch of a merge.
package edits

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
)

// Bounds of what is read of one action.
const (
	maxChanges = 50        // of files
	maxDepth   = 8         // of arguments
	MaxShown   = 64 << 10  // bytes of one file
	MaxAll     = 256 << 10 // bytes of all
)

// Change is what an action would do to one file.
type Change struct {
	Path string   `json:"path"`
	Diff string   `json:"diff"`           // unified, below the file's name
	Note string   `json:"note,omitempty"` // what it is not told against
	Args []string `json:"args,omitempty"` // JSON pointers of the arguments that are shown by it
}

// The names that tools give the parts of a change.
var (
	namePath  = []string{"path", "file_path", "filePath", "file", "filename"}
	nameWhole = []string{"content", "contents", "file_text", "text", "newContent", "new_content"}
	nameOld   = []string{"oldText", "old_string", "old_str", "old_text", "oldString", "search"}
	nameNew   = []string{"newText", "new_string", "new_str", "new_text", "newString", "replace"}
	namePatch = []string{"patch", "diff"}
)

// edit is a change as the arguments tell it.
type edit struct {
	path   string
	before string
	after  string
	patch  string // in place of both
	note   string
	whole  bool // after is all that the file is to hold
	all    bool // it takes the place of before wherever that is
	args   []string
}

// Of reads what an action would do to files in its arguments: texts that take
// each other's place, whole new contents, patches. kept tells what a file holds now.
func Of(args core.Raw, kept func(path string) (string, bool)) (out []Change) {
	var in map[string]any
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	r := editReader{kept: kept}
	r.look(in, "", "", 0)
	left := MaxAll
	for _, e := range once(r.edits) {
		if len(out) == maxChanges {
			break
		}
		c := e.change(kept)
		if most := min(left, MaxShown); len(c.Diff) > most {
			c.Diff, c.Args = core.ClipTo(c.Diff, most), nil
			c.Note = strings.TrimPrefix(c.Note+"; it goes on", "; ")
		}
		if c.Diff != "" {
			left -= len(c.Diff)
			out = append(out, c)
		}
	}
	return out
}

// Written are the files whose whole content is in an action's arguments, in order, at most
// 50: what they hold before tells how they would change.
func Written(args core.Raw) (paths []string) {
	var in map[string]any
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	r := editReader{kept: func(path string) (string, bool) {
		if len(paths) < maxChanges && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return "", false
	}}
	r.look(in, "", "", 0)
	return paths
}

// patchMark begins each file of a patch in git's format, and Rest ends one of which there is
// more: no line of a file is told so.
const patchMark, Rest = "diff --git ", "\n… and more\n"

// Landing reads what a task about an agent's tree would do to files: the text that
// it is bound to ends with it as a patch, which is then told here alone. Each file is
// named, and cut says that not each is drawn to its end.
func Landing(text string) (head string, out []Change, cut bool) {
	head, patch, ok := strings.Cut(text, "\n"+patchMark)
	if !ok {
		return text, nil, false
	}
	patch, cut = strings.CutSuffix(patch, Rest)
	left := MaxAll
	for part := range strings.SplitSeq(patch, "\n"+patchMark) {
		names, rest, _ := strings.Cut(part, "\n")
		c := Change{Diff: rest}
		if i := strings.LastIndex(names, " b/"); i >= 0 {
			c.Path = names[i+3:]
		}
		if about, hunks, ok := strings.Cut(rest, "\n@@ "); ok {
			c.Diff = "@@ " + hunks
			if strings.HasPrefix(about, "new file") || strings.HasPrefix(about, "deleted file") || strings.HasPrefix(about, "similarity") {
				c.Note, _, _ = strings.Cut(about, "\n")
			}
		}
		if len(out) >= maxChanges {
			left = 0
		}
		if most := min(left, MaxShown); len(c.Diff) > most {
			note := "it goes on"
			if c.Diff, cut = core.ClipTo(c.Diff, most), true; most == 0 {
				c.Diff, note = "", "not drawn here"
			}
			c.Note = strings.TrimPrefix(c.Note+"; "+note, "; ")
		}
		left -= len(c.Diff)
		out = append(out, c)
	}
	return head, out, cut
}

// editReader finds edits in arguments.
type editReader struct {
	kept  func(path string) (string, bool)
	edits []edit
}

// look reads an object, which stands at a JSON pointer.
func (r *editReader) look(in map[string]any, at, path string, depth int) {
	if p, _, ok := firstText(in, namePath); ok && p != "" {
		path = p
	}
	if patch, name, ok := firstText(in, namePatch); ok && strings.Contains("\n"+patch, "\n@@") {
		r.edits = append(r.edits, edit{path: path, patch: patch, note: "as it was given", args: []string{at + name}})
	}
	before, oldName, replaced := firstText(in, nameOld)
	after, newName, given := firstText(in, nameNew)
	whole, wholeName, written := firstText(in, nameWhole)
	switch {
	case path == "":
	case replaced && given:
		all, _ := in["replace_all"].(bool)
		r.edits = append(r.edits, edit{path: path, before: before, after: after, all: all, args: []string{at + oldName, at + newName}})
	case given: // of a file that is not there yet
		r.edits = append(r.edits, edit{path: path, after: after, args: []string{at + newName}})
	case written:
		e := edit{path: path, after: whole, whole: true, args: []string{at + wholeName}}
		now, ok := r.kept(path)
		if e.before = now; !ok {
			e.note = "what the file holds now is not known here"
		}
		r.edits = append(r.edits, e)
	}
	if depth == maxDepth {
		return
	}
	for _, key := range []string{"input", "args", "params", "diffs", "edits", "changes", "files"} {
		switch v := in[key].(type) {
		case map[string]any:
			r.look(v, at+"/"+key, path, depth+1)
		case []any:
			for i, e := range v {
				if m, ok := e.(map[string]any); ok {
					r.look(m, at+"/"+key+"/"+strconv.Itoa(i), path, depth+1)
				}
			}
		}
	}
}

// once leaves out what another edit shows: agents tell of one change in their own
// arguments and again in the protocol's.
func once(edits []edit) (out []edit) {
	covered := make([]bool, len(edits))
	for i := range edits {
		of := &edits[i]
		if covered[i] || of.patch != "" {
			continue
		}
		now, all := of.before, []int{}
		for k := range edits {
			e := &edits[k]
			if k == i || covered[k] || e.patch != "" || !sameFile(of.path, e.path) {
				continue
			}
			// A file that is there is told of as a new one, where the text before is not known.
			same := of.whole && !e.whole && e.before == "" && of.after == e.after
			same = same || of.before == e.before && of.after == e.after && k > i
			if same || e.whole && e.after == of.after && (e.note != "" || e.before == of.before) {
				of.args, covered[k] = append(of.args, e.args...), true
				continue
			}
			if e.whole || e.before == "" || !strings.Contains(now, e.before) {
				continue
			}
			n := 1
			if e.all {
				n = -1
			}
			now, all = strings.Replace(now, e.before, e.after, n), append(all, k)
		}
		if len(all) > 0 && now == of.after && now != of.before {
			for _, k := range all {
				of.args, covered[k] = append(of.args, edits[k].args...), true
			}
		}
	}
	for i := range edits {
		if !covered[i] {
			out = append(out, edits[i])
		}
	}
	return out
}

// sameFile reports that two paths may name one file: the one begins further up.
func sameFile(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// change draws an edit.
func (e *edit) change(kept func(path string) (string, bool)) Change {
	c := Change{Path: e.path, Diff: e.patch, Note: e.note, Args: e.args}
	if e.patch != "" {
		return c
	}
	c.Diff = diff.Unified(e.path, e.before, e.after, MaxShown)
	if now, ok := kept(e.path); !e.whole && (!ok || !strings.Contains(now, e.before)) && leftOut(c.Diff, e.after) {
		c.Note = "lines that stay, as the agent says, are left out"
	}
	return c
}

// leftOut reports that a diff doesn't show all lines of the text that it leads to.
func leftOut(drawn, after string) bool {
	shown := 0
	for line := range strings.SplitSeq(drawn, "\n") {
		if line != "" && (line[0] == ' ' || line[0] == '+') {
			shown++
		}
	}
	return shown < strings.Count(strings.TrimSuffix(after, "\n"), "\n")+1
}

// firstText is the first of some members that is a text, and its name below a pointer.
func firstText(in map[string]any, names []string) (text, name string, ok bool) {
	for _, name := range names {
		if v, ok := in[name].(string); ok {
			return v, "/" + name, true
		}
	}
	return "", "", false
}
