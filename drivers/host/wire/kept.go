package wire

import (
	"swarmdeck/engine/bound"
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
