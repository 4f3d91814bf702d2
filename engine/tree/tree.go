// Package tree keeps the work trees of agents: the files that each works on
// alone, how they differ from those that they were made of, and how what an
// agent did there is taken over.
//
// A tree belongs to one agent, whose name is its own. It is made of a git
// repository, of which it is a branch, or of any directory. Its state at an
// instant is a commit of a repository of the engine's, whatever the agent
// committed itself. What changes somebody else's files is a task of the kinds
// here: it passes the gate like every other, bound to the state that was looked
// at and to what it is taken over into.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
)

// Kind says what a tree is made of.
type Kind string

// The kinds.
const (
	Git   Kind = "git"   // a branch of a repository
	Plain Kind = "plain" // a copy of a directory
)

// Phase says where a tree stands.
type Phase string

// The phases.
const (
	Making  Phase = "making"  // its files are being laid out
	Ready   Phase = "ready"   // an agent can work in it
	Leaving Phase = "leaving" // its agent is gone, and so will it be
)

// Tree is the record of one.
type Tree struct {
	Agent    string `json:"agent"`
	TenantID string `json:"tenant_id"`
	Kind     Kind   `json:"kind"`
	Phase    Phase  `json:"phase"`
	Source   string `json:"source"`         // the work tree or directory that it was made of
	Host     string `json:"host,omitempty"` // where its files are; "" is the engine's machine
	Path     string `json:"path"`           // its root there
	// Place is where what the engine keeps of it is, of a tree that was made on a database.
	Place  place.Place `json:"place,omitempty"`
	Sub    string      `json:"sub,omitempty"`    // where its agent works, below both
	Branch string      `json:"branch,omitempty"` // its own, of a git tree
	Base   string      `json:"base,omitempty"`   // the branch that it was made from, into which it is taken over; "" of a detached head
	// BaseCommit is the commit of the repository that it was made from.
	BaseCommit string `json:"base_commit,omitempty"`
	// Since is the state that changes are told from: what it was made from, then what
	// of it was last taken over. Head is what the agent had committed by then.
	Since string `json:"since"`
	Head  string `json:"head,omitempty"`
	// Lacks are submodules that its source does not have, so that they are empty.
	Lacks []string `json:"lacks,omitempty"`
	// Pointers are files of git LFS whose contents its source does not have.
	Pointers Pointers `json:"pointers,omitzero"`
	// Included is what came along of the files that git ignores; nil where nothing may.
	Included *Included `json:"included,omitempty"`
	// Setup is what runs in it first; nil is nothing.
	Setup *Setup `json:"setup,omitempty"`
	// Landing is the merge, or the way back, that was begun last.
	Landing *Landing `json:"landing,omitempty"`
	// Pushed are the commits that were sent elsewhere, by URL and branch.
	Pushed    map[string]string `json:"pushed,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	AuditSeq  uint64            `json:"audit_seq,omitzero"`
}

// Pointers are files that stay pointers of git LFS: how many, and the first.
type Pointers struct {
	Files int    `json:"files"`
	First string `json:"first"`
}

// Included are ignored files that were copied, as the base lists them.
type Included struct {
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Names []string `json:"names,omitempty"` // the first of them, each with its size
}

// maxIncluded is how many of them are named.
const maxIncluded = 20

// Add notes one more.
func (n *Included) Add(name string, size int64) {
	if n.Files++; n.Files <= maxIncluded {
		n.Names = append(n.Names, fmt.Sprintf("%s (%d bytes)", shown(name), size))
	}
	n.Bytes += size
}

// shown is a path of somebody's choice in a line.
func shown(path string) string {
	if path = core.Clip(path); !core.Printable(path) {
		path = strconv.Quote(path)
	}
	return path
}

// Told is a sentence about them, "" of none.
func (n *Included) Told(agent string) string {
	if n == nil || n.Files == 0 {
		return ""
	}
	text := fmt.Sprintf("the tree of %s has copies of files that git ignores: %s", agent, strings.Join(n.Names, ", "))
	if over := n.Files - len(n.Names); over > 0 {
		text += fmt.Sprintf(" and %d more", over)
	}
	return text + fmt.Sprintf("; %d bytes in all", n.Bytes)
}

// State is a tree at an instant.
type State struct {
	Commit string `json:"commit"`         // in the engine's repository
	Head   string `json:"head,omitempty"` // what the agent has committed
}

// Change is how one file differs between two states.
type Change struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // its path before, of one that was moved
	Status  string `json:"status"`         // added, changed, deleted, moved, type
	Added   int    `json:"added"`          // lines
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitzero"`
	// LFS is the size of the object, of a file that is one of git LFS.
	LFS int64 `json:"lfs,omitzero"` // bytes
}

// Mode says how the commits of a tree become commits of its base.
type Mode string

// The modes.
const (
	Squash Mode = "squash" // one commit with all that changed
	Rebase Mode = "rebase" // the agent's commits one after another, and one with the rest
	Merge  Mode = "merge"  // a commit of two parents, the second the agent's
)

// Modes are all of them.
func Modes() []Mode { return []Mode{Squash, Rebase, Merge} }

// Piece is a part of what changed: a file, or hunks of it, counted from 1.
type Piece struct {
	Path  string `json:"path"`
	Hunks []int  `json:"hunks,omitempty"`
}

// Join asks for what a base would be with the changes of a tree on top.
type Join struct {
	// Key names the landing that it is for: joined again under the same, it is what
	// it was. "" is only to look.
	Key     string
	State   string  // of the tree
	Onto    string  // a commit of the base; of a plain tree a state of the directory
	Mode    Mode    // of a git tree
	Only    []Piece // nil is all
	Message string
	Agent   string // the author beside
	By      string // who takes it over, where the user's configuration names nobody
	At      time.Time
}

// Joined is that.
type Joined struct {
	State     string   `json:"state"`            // of the tree that is in it: the one that was asked for, or the part of it
	Commit    string   `json:"commit,omitempty"` // a state, of a plain tree
	Tree      string   `json:"tree,omitempty"`
	Onto      string   `json:"onto"`                // what it is on top of
	Commits   []string `json:"commits,omitempty"`   // subjects, the oldest first
	Conflicts []string `json:"conflicts,omitempty"` // paths; there is no commit then
	// Marked are files in which it leaves conflict markers, of what is only to look.
	Marked []string `json:"marked,omitempty"`
}

// Command is one to run on a state.
type Command struct {
	Argv []string
	Env  map[string]string
	Log  func(line string)             // hears what it prints
	Runs func(p Process) (over func()) // hears of its process, until that is over
}

// Process can be made to stand still.
type Process interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Wanted says which tree is to be made.
type Wanted struct {
	Project, Agent string
	Host           string // where its files are to be; "" is the engine's machine
	Dir            string // of the engine's machine, of which it is made
	Base           string // a branch; "" is the one that is checked out
}

// ErrHalf is the error of a landing that is neither done nor taken back.
var ErrHalf = errors.New("what of it is done can't be taken back")

// Driver makes trees and works on them. Drivers provide it. What changes
// something is given a key or has a state that says whether it is done: done
// again after a crash it goes on, and nobody sees it half done.
type Driver interface {
	// Repository is the name of the git repository that a directory is in, "" for none.
	Repository(dir string) string
	// Look finds what a tree would be made of, and where.
	Look(ctx context.Context, tenant string, w Wanted) (Tree, error)
	// Make lays its files out, and Remove takes them away.
	Make(ctx context.Context, t Tree) error
	Remove(ctx context.Context, t Tree) error
	// Reads are places outside of it that its agent reads as its own.
	Reads(t Tree) []string
	// Now is its state, Tip that of what it is taken over into.
	Now(ctx context.Context, t Tree) (State, error)
	Tip(ctx context.Context, t Tree) (string, error)
	// Apart counts the commits of the agent that were not taken over, and those of the
	// base, up to tip, since the tree was made from it.
	Apart(ctx context.Context, t Tree, now State, tip string) (ahead, behind int, err error)
	// Mark keeps its state under a label. Marked finds that of a task or a call by its
	// id, or a commit.
	Mark(ctx context.Context, t Tree, label string) error
	Marked(ctx context.Context, t Tree, label string) (string, error)
	// Changes lists the files that differ between two states, Diff writes how, in
	// git's format of patches; of no paths all.
	Changes(ctx context.Context, t Tree, from, to string) ([]Change, error)
	Diff(ctx context.Context, t Tree, from, to string, paths []string, out io.Writer) error
	// Whole writes the same with all lines of each file; what is in submodules is left out.
	Whole(ctx context.Context, t Tree, from, to string, paths []string, out io.Writer) error
	// Join makes the commits, and changes nothing outside of the engine's repository.
	Join(ctx context.Context, t Tree, j Join) (Joined, error)
	// Update brings what the base became into the tree, and marks conflicts in the
	// files. It changes the tree's files alone.
	Update(ctx context.Context, t Tree, key, state, onto string) (conflicts []string, err error)
	// File is what a regular file held in a state of the tree, and Edit writes it anew
	// in the files of the tree, which are in that state.
	File(ctx context.Context, t Tree, state, path string) ([]byte, error)
	Edit(ctx context.Context, t Tree, key, state, path string, content []byte) error
	// Land brings what the tree is of from one commit to another: its branch, and the
	// files where that is checked out. What it can't do it takes back whole, but for an
	// error that wraps ErrHalf. Back takes back what is left of one then, unless it is
	// done after all.
	Land(ctx context.Context, t Tree, key, from, to string) error
	Back(ctx context.Context, t Tree, key, from, to string) (done bool, err error)
	// Published reports a commit that a remote's branch is known to have.
	Published(ctx context.Context, t Tree, commit string) (where string, err error)
	// Run lays a state out in a directory of its own and runs a command there, in a
	// cell; of no state it runs in the tree itself.
	Run(ctx context.Context, t Tree, state string, c Command) (Ran, error)
	// Push sends a commit elsewhere, with nothing of the tree's or its repository's configuration.
	Push(ctx context.Context, t Tree, p Push) error
	// Request opens a request to take a pushed branch over, with the program that the
	// forge has for that, and returns what it says.
	Request(ctx context.Context, t Tree, q Request) (said string, err error)
}

// Request asks others to take a branch over.
type Request struct {
	To                    Place
	Branch, Base, Message string
}

// Ran is how a command ended.
type Ran struct {
	Command []string `json:"command"`
	Code    int      `json:"rc"`
	TookMS  int64    `json:"duration_ms"`
	Tail    string   `json:"tail,omitempty"` // the last lines that it printed
}

// Push asks to send a commit to a branch elsewhere.
type Push struct {
	URL    string
	Commit string
	Branch string
	// Was is what that branch is known to be there, which may then be replaced; ""
	// replaces nothing.
	Was string
}

// Dir is where the tree's agent works.
func (t *Tree) Dir() string {
	if t.Sub == "" {
		return t.Path
	}
	return t.Path + "/" + t.Sub
}

// notThere is the error of an agent that has no tree.
func notThere(agent string) error {
	return core.Errorf(core.NotFound, "agent: %q has no tree: it shares the directory that it works in; allowed: an agent that was made with --tree", core.Clip(agent)).With("field", "agent").With("value", agent)
}
