//go:build linux

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
)

// clusterOf tells of the engines of a database as one of them sees them.
func clusterOf(me string, lease time.Duration, engines []postgres.Engine, owned []postgres.Owned) cluster.Cluster {
	c := cluster.Cluster{Shared: true, At: time.Now()}
	has := map[string][]string{}
	for _, o := range owned {
		if o.Free {
			c.Free = append(c.Free, o.Tenant)
		} else {
			has[o.Engine] = append(has[o.Engine], o.Tenant)
		}
	}
	for _, e := range engines {
		if e.Visits() {
			continue
		}
		state := cluster.Up
		switch {
		case !e.Live:
			state = cluster.Gone
		case e.Silent > lease*2/3:
			state = cluster.Late
		case e.Draining:
			state = cluster.Draining
		}
		c.Engines = append(c.Engines, cluster.Engine{
			Name: e.Name, Host: e.Host, Version: e.Version, Address: e.Address, State: state, Here: e.Name == me,
			Since: e.Since, Seen: e.Seen, Silent: e.Silent.Milliseconds(), Count: len(has[e.Name]), Tenants: append([]string{}, has[e.Name]...),
		})
	}
	return c
}

// look tells which engines share the database.
func (d *engines) look(ctx context.Context) (cluster.Cluster, error) {
	d.mu.Lock()
	base := d.base
	d.mu.Unlock()
	if base == nil {
		return cluster.Cluster{}, nil
	}
	engines, owned, err := base.Engines(ctx)
	return clusterOf(base.Engine(), base.Lease(), engines, owned), err
}

// note has the cockpits here show which engines there are.
func (d *engines) note(engines []postgres.Engine, owned []postgres.Owned) {
	if !d.cluster.Note(clusterOf(d.base.Engine(), d.base.Lease(), engines, owned)) {
		return
	}
	for _, eng := range d.All() {
		eng.ClusterChanged()
	}
}

// lookOn has a cockpit that only reads show which engines there are, until the returned
// function ends it.
func (d *engines) lookOn(ctx context.Context) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !core.Within(ctx.Done(), lookEvery) {
			if engines, owned, err := d.base.Engines(ctx); err == nil {
				d.note(engines, owned)
			}
		}
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}
}

// clusterIn tells which engines work on the data of one here. That of a data file is
// alone; a command that works on nothing is none.
func (h *instance) clusterIn(need command.Need) *cluster.Book {
	if h.base != nil || !need.Active {
		return h.cluster
	}
	me := self()
	me.Since = time.Now().UTC()
	return cluster.Alone(cluster.Engine{
		Name: fmt.Sprintf("%s-%d", me.Host, os.Getpid()), Host: me.Host, Version: me.Version, Since: me.Since, Seen: me.Since,
	}, h.names)
}

// names are the tenants of a data file.
func (h *instance) names(ctx context.Context) (names []string, err error) {
	eng, err := h.working()
	if err != nil {
		return nil, err
	}
	all, err := eng.Swarm.Tenants(ctx)
	for _, t := range all {
		names = append(names, t.TenantID)
	}
	return names, err
}

func (d *engines) For(ctx context.Context, tenant string) (*engine.Engine, error) {
	eng, err := d.Of(ctx, tenant)
	if errors.As(err, new(*socket.OtherEngineError)) {
		err = d.peers.named(ctx, tenant, err)
	}
	return eng, err
}

func (d *engines) Here(tenant string) (*engine.Engine, bool) {
	d.mu.Lock()
	h := d.instances[tenant]
	if d.base == nil {
		h = d.file
	}
	d.mu.Unlock()
	if h == nil {
		return nil, false
	}
	eng, err := h.working()
	return eng, err == nil
}

// follow has the engines of this process, which only read, ring when another process
// commits, until the returned function ends it.
func (d *engines) follow(ctx context.Context) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	base := d.base
	go func() {
		defer close(done)
		base.Follow(ctx, func(tenants []string) {
			for _, eng := range d.All() {
				for _, tenant := range tenants {
					eng.Stirred(tenant)
				}
			}
		})
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}
}

// placeOf names the files that this machine has beside the store of a database, by a file
// among them: they keep the name where they are moved to another machine. Who only reads,
// where nobody has worked yet, has none.
func placeOf(need command.Need) (place.Place, error) {
	path := need.Data + ".run/place"
	name, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && need.ReadOnly {
		return "", nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		name = []byte(command.Machine() + "/" + rand.Text()[:8] + "\n")
		if err = os.WriteFile(path+".new", name, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	p := place.Place(strings.TrimSpace(string(name)))
	switch {
	case err != nil:
		return "", fmt.Errorf("name this machine's files of the database: %w", err)
	case !core.Printable(string(p)) || !strings.Contains(string(p), "/") || len(p) > 200:
		return "", core.Invalid(path, core.Clip(string(p)), "HOST/WORD, as it was written; remove the file, and what lies beside it counts as another machine's")
	}
	return p, nil
}
