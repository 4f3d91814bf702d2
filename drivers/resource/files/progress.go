package files

import (
	"sync/atomic"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

// progress is how far a snapshot has come.
type progress struct {
	done *atomic.Int64 // files that were read
	all  int           // that are to be
}

var _ resource.Copying = (*Driver)(nil)

// begins notes a snapshot of a place, until what it returns is called.
func (d *Driver) begins(path string, done *atomic.Int64, all int) (over func()) {
	p := &progress{done, all}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.copying[path] = p
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.copying[path] == p { // else it is another one's
			delete(d.copying, path)
		}
	}
}

func (d *Driver) Copying(r dag.Resource) (done, all int) {
	path, err := PathOf(r)
	if err != nil {
		return 0, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.copying[path]; p != nil {
		return int(p.done.Load()), p.all
	}
	return 0, 0
}
