package wire

import (
	"fmt"

	"swarmdeck/engine/core"
)

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
	Tasks   []string `json:"tasks,omitempty"` // that it was at work on
	Itself  bool     `json:"itself"`          // it had ended, with Code or Signal, before it was ended for the next engine
	Code    int      `json:"code,omitzero"`
	Signal  int      `json:"signal,omitzero"`
	LostMS  int64    `json:"lost_ms"`  // since the last word of its engine
	EndedMS int64    `json:"ended_ms"` // since its end
	Stdout  []byte   `json:"stdout,omitempty"`
	Stderr  []byte   `json:"stderr,omitempty"`
	Cut     bool     `json:"cut,omitzero"` // there was more before
}

// Bounds of Kept.
const (
	MaxKept  = 64 << 10 // bytes of each stream
	MaxTasks = 64
	maxAgo   = 1 << 40 // milliseconds
)

// Check reports what can't be kept of a run.
func (k *Kept) Check() error {
	if !id(k.Run) || !id(k.Agent) {
		return core.Invalid("kept.run", k.Run, "an id, and an agent's name")
	}
	if len(k.Tasks) > MaxTasks {
		return core.Invalid("kept.tasks", len(k.Tasks), fmt.Sprintf("at most %d", MaxTasks))
	}
	if len(k.Stdout) > MaxKept || len(k.Stderr) > MaxKept {
		return core.Invalid("kept.stdout, kept.stderr", max(len(k.Stdout), len(k.Stderr)), fmt.Sprintf("at most %d bytes", MaxKept))
	}
	if k.Code < 0 || k.Code > 255 || k.Signal < 0 || k.Signal > 64 || k.LostMS < 0 || k.LostMS > maxAgo || k.EndedMS < 0 || k.EndedMS > maxAgo {
		return core.Invalid("kept", k.Run, "numbers within their bounds")
	}
	return nil
}
