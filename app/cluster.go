//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
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
