package cad

import (
	"path/filepath"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Recorder is told what CAD agents do, in the transactions that store it.
type Recorder interface {
	// CADAgent tells that an agent was made, or terminated.
	CADAgent(tx *audit.Tx, a *Agent) error
	Operation(tx *audit.Tx, o Operated) error
}

// Operated is an operation that was carried out, or refused.
type Operated struct {
	AgentID, TaskID string
	Method          string
	Params          core.Raw
	Decision        core.Raw // the judge's; nil where it was not asked
	Data            core.Raw // that it answered
	Fault           *OpError // nil when it was carried out
	File            string   // that it wrote, absolute; "" for none
}

func (x *execution) recorded(tx *audit.Tx, o Operated) error {
	if x.c.opt.Record == nil {
		return nil
	}
	o.AgentID, o.TaskID, o.Method, o.Params = x.m.id, x.op.TaskID, x.method.Name, x.params
	if len(o.Params) == 0 {
		o.Params = x.op.Params
	}
	if x.file != "" && o.Fault == nil {
		dir, path, _ := strings.Cut(x.file, "\x00")
		if o.File = path; !filepath.IsAbs(path) {
			o.File = filepath.Join(dir, path)
		}
	}
	return x.c.opt.Record.Operation(tx, o)
}

func (c *roster) recordAgent(tx *audit.Tx, a *Agent) error {
	if c.opt.Record == nil {
		return nil
	}
	return c.opt.Record.CADAgent(tx, a)
}
