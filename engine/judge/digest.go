package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// An approval is bound to the sha256 of this RFC 8785 document (requirement 2.4):
//
//	{"action":{"agent","call_id","files","gate","kind","server","tool"},"arguments":{…},
//	 "attempt":N,"policy_version":"…","task":"…","tenant":"…"}
//
// "files" is [{"mode","path","runs","sha256","size","unbound"}], and is there
// only where the action names files.
//
// The arguments are the final ones, after validation and edits. A task id is
// known only inside the transaction that makes the task, so the hash over
// everything before it is prepared outside.

// CheckArgs reports arguments that can't be bound to a digest: not one JSON
// object, too large, or with numbers that lose digits in a float64. Check at
// dispatch: Evaluate denies such an ask and Commit fails with this error.
func CheckArgs(args core.Raw) error {
	_, err := canonicalArgs(args)
	return err
}

func canonicalArgs(args core.Raw) (core.Raw, error) {
	if len(args) == 0 {
		return core.Raw("{}"), nil
	}
	if len(args) > core.MaxInput {
		return nil, core.CheckObject("args", args, core.MaxInput)
	}
	if args.Kind() != '{' {
		return nil, core.Errorf(core.InvalidInput, "args: want a JSON object").With("field", "args")
	}
	return core.Canonical(args)
}

// digestPrefix hashes the document up to and without the task's value.
func digestPrefix(ask *Ask, canonical core.Raw, version string) hash.Hash {
	h := sha256.New()
	b := member(make([]byte, 0, 256), `{"action":{"agent":`, ask.Agent.Name)
	b = member(b, `,"call_id":`, ask.Action.CallID)
	if len(ask.Action.Files) > 0 {
		b = append(b, `,"files":`...)
		b = appendFiles(b, ask.Action.Files)
	}
	b = member(b, `,"gate":`, string(ask.Gate))
	b = member(b, `,"kind":`, ask.Action.Kind)
	b = member(b, `,"server":`, ask.Action.Server)
	b = member(b, `,"tool":`, ask.Action.Tool)
	b = append(b, `},"arguments":`...)
	h.Write(b)
	h.Write(canonical)
	b = append(b[:0], `,"attempt":`...)
	b = strconv.AppendInt(b, int64(ask.Attempt), 10)
	b = member(b, `,"policy_version":`, version)
	b = append(b, `,"task":`...)
	h.Write(b)
	return h
}

// finish completes a prefix. It leaves prefix as it was.
func finish(prefix hash.Hash, task, tenant string) string {
	h, err := prefix.(hash.Cloner).Clone()
	if err != nil { // sha256 always can
		panic("judge: sha256 can't be cloned: " + err.Error())
	}
	b := quote(make([]byte, 0, 128), task)
	b = member(b, `,"tenant":`, tenant)
	b = append(b, '}')
	h.Write(b)
	sum := h.Sum(b[:0])
	return string(hex.AppendEncode(sum, sum)[sha256.Size:])
}

// Digest binds an ask to a policy version, as approvals store it.
func Digest(tenant, version string, ask Ask) (string, error) {
	canonical, err := canonicalArgs(ask.Action.Args)
	if err != nil {
		return "", err
	}
	return finish(digestPrefix(&ask, canonical, version), ask.TaskID, tenant), nil
}

// member appends what leads to a JSON string, and s as that.
func member(b []byte, lead, s string) []byte { return quote(append(b, lead...), s) }

// quote appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(b, s)
	return out
}

// File is a file of the work directory that an action names, as it was when
// the judge was asked.
type File struct {
	Path   string `json:"path"`             // below the work directory; with Unbound it may be a word of the command
	SHA256 string `json:"sha256,omitempty"` // hex; "" of one that was not there, or is not bound
	Size   int64  `json:"size,omitzero"`    // bytes
	Mode   string `json:"mode,omitempty"`   // permissions, octal
	// Runs says that the file says what happens: a program, a script, a
	// configuration. What runs is then a copy of what was judged.
	Runs bool `json:"runs,omitzero"`
	// Unbound says why nothing is bound; "" otherwise.
	Unbound string `json:"unbound,omitempty"`
	// Lies tells, a line each, of files that it brings and that run on a person's
	// machine by lying there: "FILE runs on your machine when …".
	Lies string `json:"lies,omitempty"`

	// Only Card fills these in. Text is what the file holds, or Diff how it
	// differs from the version that a person approved last; Note says which
	// that is, or why something is left off.
	Text string `json:"text,omitempty"`
	Diff string `json:"diff,omitempty"`
	Note string `json:"note,omitempty"`
}

// ErrChanged is the error of an effect whose files are not what was judged.
var ErrChanged = errors.New("is not what was judged")

// Line is the file in one line, for a card.
func (f *File) Line() string {
	if f.Unbound != "" {
		return "not bound: " + f.Path + " (" + f.Unbound + ")"
	}
	if f.isNew() {
		return f.Path + ", a new file"
	}
	use := "compared when it starts"
	if f.Runs {
		use = "runs as shown"
	}
	line := fmt.Sprintf("%s, %s, %d bytes, sha256 %.12s, %s", f.Path, f.Mode, f.Size, f.SHA256, use)
	if f.Note != "" {
		line += "; " + f.Note
	}
	return line
}

// isNew reports that there was no such file when the judge was asked.
func (f *File) isNew() bool { return f.Unbound == "" && f.SHA256 == "" }

// same reports whether an approval of the one covers the other.
func (f *File) same(g *File) bool {
	return f.Path == g.Path && f.SHA256 == g.SHA256 && f.Size == g.Size && f.Mode == g.Mode && f.Runs == g.Runs && f.Unbound == g.Unbound
}

// SameFiles reports whether an approval of the ones covers the others.
func SameFiles(a, b []File) bool {
	return slices.EqualFunc(a, b, func(f, g File) bool { return f.same(&g) })
}

// changedFile names a file that is not as it was judged, "" for none.
func changedFile(judged, now []File) string {
	for _, pair := range [][2][]File{{judged, now}, {now, judged}} {
		for i := range pair[0] {
			f := &pair[0][i]
			if !slices.ContainsFunc(pair[1], func(g File) bool { return f.same(&g) }) {
				return f.Path
			}
		}
	}
	return ""
}

// appendFiles appends the files as canonical JSON.
func appendFiles(b []byte, files []File) []byte {
	b = append(b, '[')
	for i, f := range files {
		if i > 0 {
			b = append(b, ',')
		}
		b = member(b, `{"mode":`, f.Mode)
		b = member(b, `,"path":`, f.Path)
		b = append(b, `,"runs":`...)
		b = strconv.AppendBool(b, f.Runs)
		b = member(b, `,"sha256":`, f.SHA256)
		b = append(b, `,"size":`...)
		b = strconv.AppendInt(b, f.Size, 10)
		b = member(b, `,"unbound":`, f.Unbound)
		b = append(b, '}')
	}
	return append(b, ']')
}

// Contents are the versions of files that were judged. Whoever looks at the
// files keeps them, for as long as there is room.
type Contents interface {
	// Content is what a version holds; false when it is not kept.
	Content(tenant, sha256 string) ([]byte, bool)
}

// Binder is implemented by a Settler whose actions name files.
type Binder interface {
	// Bind finds the files that an approval's action names, as they are now.
	Bind(a Approval) []File
}

// ApprovedFiles are the files that an approval is bound to.
func (j *approvals) ApprovedFiles(tx *audit.Tx, id string) ([]File, error) {
	a, err := j.kind.Need(tx, id)
	if err != nil {
		return nil, err
	}
	return a.Action.Files, nil
}

// FilesDigest tells one set of files from another; "" for none.
func FilesDigest(files []File) string {
	if len(files) == 0 {
		return ""
	}
	return digestOf(appendFiles(nil, files))
}

// Containment says whether an effect can be felt by nothing but the caller's own tree,
// which keeps a state from before, its home and /tmp, and by hosts that are allowed
// already. Whoever asks vouches for it; the zero one holds nothing.
type Containment struct {
	Holds bool   `json:"holds,omitzero"`
	Why   string `json:"why,omitempty"` // it does not hold; "" also where nobody looked
}

// Contained is the containment with nothing in its way, or the one that does not hold for
// a reason.
func Contained(why string) Containment { return Containment{why == "", why} }

// Outside is a path that an action's arguments name, as far as their names tell, and that
// lies in none of some directories, the first of which it works in; "" for none.
func Outside(args core.Raw, dirs ...string) string {
	values, _ := core.Values(args)
	var s Subject
	s.pull("", values, nil, 0)
	for _, path := range s.Paths {
		full := path
		if !filepath.IsAbs(full) && !strings.HasPrefix(full, "~") {
			full = filepath.Join(dirs[0], full)
		}
		if full = filepath.Clean(full); !slices.ContainsFunc(dirs, func(dir string) bool {
			return dir != "" && (full == dir || strings.HasPrefix(full, dir+"/"))
		}) && !strings.HasPrefix(full, "~/") {
			return path
		}
	}
	return ""
}
