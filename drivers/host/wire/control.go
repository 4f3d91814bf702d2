package wire

import (
	"path/filepath"
	"time"

	"swarmdeck/drivers/desk"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Control is a frame about the link as a whole; one member is set.
type Control struct {
	Hello   *Hello   `json:"hello,omitzero"`   // the engine's first
	Welcome *Welcome `json:"welcome,omitzero"` // the answer
	// Beat is the keeper's, once a while, and comes back from the engine as it is.
	// The lease there counts from when the newest one left that has come back, so it
	// is over before the engine thinks so, however long what is on its way takes.
	Beat uint64 `json:"beat,omitzero"`
	// HoldMS comes back with a beat from an engine that has its data by a lease: for how
	// many milliseconds from then on nobody else can have them, 0 if that is over.
	HoldMS int64    `json:"hold_ms,omitzero"`
	Kept   *Kept    `json:"kept,omitzero"`   // the keeper's, as many as Welcome says
	Took   string   `json:"took,omitempty"`  // the engine's: the run whose Kept it has
	Agents []string `json:"agents,omitzero"` // whose places are kept; those of others go
	End    *End     `json:"end,omitzero"`    // the engine's: end all
	Ended  *Ended   `json:"ended,omitzero"`  // the answer, after which the keeper goes
}

// Hello says who comes, and what it knows of: the rest is ended.
type Hello struct {
	Version int      `json:"version"`
	Engine  string   `json:"engine"`  // another one for each start of the engine
	Epoch   uint64   `json:"epoch"`   // of the tenant's owner: one below the highest that came is refused
	Leased  bool     `json:"leased"`  // processes run only as long as HoldMS says
	Attempt uint64   `json:"attempt"` // grows with each link: an older one that comes late is refused
	LeaseMS int64    `json:"lease_ms" allow:"1000-3600000"`
	Runs    []string `json:"runs" allow:"at most 4096"`
}

// Welcome says whom it came to.
type Welcome struct {
	Version int      `json:"version"`
	Digest  string   `json:"digest"`                             // of the program
	Boot    string   `json:"boot"`                               // another one for each start of the keeper
	Program string   `json:"program"`                            // where this program is there
	Runs    []string `json:"runs" allow:"at most 4096"`          // of Hello's, that are there
	Lacks   []string `json:"lacks,omitempty" allow:"at most 64"` // layers of the wall
	Newer   uint64   `json:"newer,omitzero"`                     // the epoch that the link is refused for
	Kept    int      `json:"kept,omitzero" allow:"0-4096"`       // how many Kept follow
	Error   string   `json:"error,omitempty"`                    // why the link is refused; all else is empty
}

// End asks for the end of all runs and of the keeper.
type End struct {
	Remove bool   `json:"remove"` // and of its files
	Epoch  uint64 `json:"epoch"`  // as Hello's
}

// Ended says that nothing is left, or what is.
type Ended struct {
	Error string `json:"error,omitempty"`
}

// Bounds of what is about the link.
const (
	MaxRuns  = 4096
	MaxID    = 64 // bytes of ids and names
	MaxLease = 3600e3
	maxLacks = 64
	maxText  = 4096
)

// Beats is how often a keeper sends a beat, and how long a link is quiet on which
// none comes, or comes back, until it is none.
func Beats(lease time.Duration) (every, most time.Duration) {
	return min(time.Second, lease/8), min(10*time.Second, lease/2)
}

// HoldBeat is how often a keeper sends one, at least, to an engine that has its data by a
// lease.
const HoldBeat = 250 * time.Millisecond

// Check reports a hello that can't be one.
func (h *Hello) Check() error {
	if err := bound.Check(h); err != nil {
		return err
	}
	return ids("runs", append([]string{h.Engine}, h.Runs...))
}

// Check reports a welcome that can't be one.
func (w *Welcome) Check() error {
	if w.Error != "" {
		return nil
	}
	if !id(w.Boot) || !id(w.Digest) {
		return core.Invalid("boot", w.Boot, "an id")
	}
	if !filepath.IsAbs(w.Program) || len(w.Program) > maxText || desk.Text(w.Program, maxText) != w.Program {
		return core.Invalid("program", desk.Text(w.Program, 128), "an absolute path")
	}
	if err := bound.Check(w); err != nil {
		return err
	}
	for i, l := range w.Lacks {
		w.Lacks[i] = desk.Text(l, 512)
	}
	return ids("runs", w.Runs)
}

func ids(field string, list []string) error {
	for _, r := range list {
		if !id(r) {
			return core.Invalid(field, r, "ids")
		}
	}
	return nil
}

// id reports whether a text is one: letters, digits and hyphens.
func id(s string) bool { return idPattern().MatchString(s) }

var idPattern = core.Pattern(`^[a-zA-Z0-9-]{1,64}$`)

// Keep is what of a run the keeper has for the next engine, when its own does not come
// back.
type Keep struct {
	Stdout  bool              `json:"stdout"`            // its standard output, beside its standard error
	Secrets map[string]string `json:"secrets,omitempty"` // by name: masked in that
}

// Kept is how a run ended whose engine was not there any more. Of a run of this host's it
// says what that engine had not read; whose the run may be, the next engine looks up.
type Kept struct {
	Run     string   `json:"run"`
	Agent   string   `json:"agent"`
	Tasks   []string `json:"tasks,omitempty" allow:"at most 64"` // that it was at work on
	Itself  bool     `json:"itself"`                             // it had ended, with Code or Signal, before it was ended for the next engine
	Code    int      `json:"code,omitzero" allow:"0-255"`
	Signal  int      `json:"signal,omitzero" allow:"0-64"`
	LostMS  int64    `json:"lost_ms" allow:"0-1099511627776"`  // since the last word of its engine
	EndedMS int64    `json:"ended_ms" allow:"0-1099511627776"` // since its end
	Stdout  []byte   `json:"stdout,omitempty" allow:"at most 65536 bytes"`
	Stderr  []byte   `json:"stderr,omitempty" allow:"at most 65536 bytes"`
	Cut     bool     `json:"cut,omitzero"` // there was more before
}

// Bounds of Kept.
const (
	MaxKept  = 64 << 10 // bytes of each stream
	MaxTasks = 64
)

// Check reports what can't be kept of a run.
func (k *Kept) Check() error {
	if !id(k.Run) || !id(k.Agent) {
		return core.Invalid("kept.run", k.Run, "an id, and an agent's name")
	}
	return bound.CheckIn("kept.", k)
}
