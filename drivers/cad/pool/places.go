package pool

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

// places are directories of workspaces that lie outside of Options.Files. What
// a process reaches is settled when it starts, and a directory that was made
// anew since is another.
type places map[string]os.FileInfo

// maxPlaces bounds those of one tenant.
const maxPlaces = 32

func (p places) has(dir string, there os.FileInfo) bool {
	return there == nil || p[dir] != nil && os.SameFile(p[dir], there)
}

// own finds the directory of a site that has one of its own, and has the next
// processes of its tenant reach it; nil for another site.
func (p *Pool) own(at cad.Site) (os.FileInfo, error) {
	if at.Directory == "" || p.opt.Files != "" && strings.HasPrefix(at.Directory, filepath.Join(p.opt.Files, at.Tenant)+"/") {
		return nil, nil
	}
	there, err := os.Stat(at.Directory)
	if err != nil {
		return nil, core.Errorf(core.Unavailable, "find the directory of workspace %s: %v", at.Workspace, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.places[at.Tenant]
	if len(all) >= maxPlaces {
		all = nil // who still needs one of them brings it again
	}
	all = maps.Clone(all)
	if all == nil {
		all = places{}
	}
	all[at.Directory] = there
	p.places[at.Tenant] = all
	return there, nil
}

// spec is how a worker is started: without network, and with nothing to write
// but files of its tenant's workspaces.
func (p *Pool) spec(w *worker) (cell.Spec, error) {
	wall, env := cell.Wall{Profile: cell.Reader, Named: true}, maps.Clone(p.opt.Env)
	if env == nil {
		env = map[string]string{}
	}
	if p.opt.Files != "" {
		dir := filepath.Join(p.opt.Files, w.tenant)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return cell.Spec{}, core.Errorf(core.Unavailable, "make a place for files: %v", err)
		}
		wall.Write = append(wall.Write, dir)
	}
	maps.DeleteFunc(w.places, func(dir string, _ os.FileInfo) bool { // those that have gone
		_, err := os.Stat(dir)
		return err != nil
	})
	wall.Write = slices.AppendSeq(wall.Write, maps.Keys(w.places))
	if k := p.kernel(w.kernel); k.Extra != nil {
		write, more := k.Extra()
		wall.Write = append(wall.Write, write...)
		maps.Copy(env, more)
	}
	return cell.Spec{
		Run: "cad-" + w.tenant, Argv: append(slices.Clone(p.opt.Command), "--kernel", w.kernel),
		Dir: p.opt.Dir, Env: env, Limits: p.opt.Limits, Wall: wall,
	}, nil
}
