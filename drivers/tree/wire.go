package tree

import (
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/engine/tree"
)

// request is what an engine asks about a tree whose files are on another machine. What
// its objects need that are not there follows as a pack.
type request struct {
	Op   string    `json:"op"` // one of the below
	Tree tree.Tree `json:"tree"`
	// Have are commits that the engine has, of a base those that the pack is for; From and
	// To are commits, and Key is that of landing them. Modules says that a place or a base
	// is one of submodules, Large are objects of git LFS that are looked for in a place.
	Have  []string      `json:"have,omitempty"`
	Large []lfs.Pointer `json:"large,omitempty"`
	From  string        `json:"from,omitempty"`
	To    string        `json:"to,omitempty"`
	Key   string        `json:"key,omitempty"`

	Modules bool `json:"modules,omitzero"`
	// Converts is how the files of a tree that is made are converted.
	Converts conversion `json:"converts,omitzero"`
	// Ends are the commits at which a source's history ends (shallow, gitformat-shallow(5)).
	Ends string `json:"ends,omitempty"`
	OID  string `json:"oid,omitempty"` // of an object of git LFS
	Size int64  `json:"size,omitzero"`
}

// What can be asked for.
const (
	opPlace   = "place"   // where the tree would be, and what is there that need not be sent
	opBase    = "base"    // take commits of the source or of its submodules, in the pack
	opFill    = "fill"    // take an object of git LFS, which follows
	opMake    = "make"    // lay the tree out; what it holds of no source is in the pack
	opState   = "state"   // take its state, which follows as a pack
	opCommits = "commits" // the agent's commits From one To another, which follow as a pack
	opLarge   = "large"   // an object of git LFS, which follows
	opLand    = "land"    // bring its files From a state To another one, which is in the pack
)

// answer is what came of it.
type answer struct {
	Path   string   `json:"path,omitempty"`
	Have   []string `json:"have,omitempty"` // commits of the source or of its submodules, or the names of objects
	Commit string   `json:"commit,omitempty"`
	Head   string   `json:"head,omitempty"`
	Pack   bool     `json:"pack,omitzero"` // one follows
	desk.Failure
}

// maxHave bounds how many commits or objects are named that need not be sent.
const maxHave = 200
