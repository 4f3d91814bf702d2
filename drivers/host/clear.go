package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/engine/host"
)

const goarch = runtime.GOARCH

// Clear implements host.Driver.
func (p *Pool) Clear(ctx context.Context, h host.Host) error {
	at := place{h.TenantID, h.Name}
	l := newLink(p, at, h)
	p.mu.Lock()
	p.links[at] = l
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.links, at)
		p.mu.Unlock()
	}()
	err := l.clear(ctx)
	for rest := firstRest; err != nil && ctx.Err() == nil; rest = min(2*rest, longRest) {
		l.set(host.Refused, wire.Text(err.Error(), maxReason))
		select {
		case <-ctx.Done():
		case <-time.After(rest):
			err = l.clear(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.state().Reason, err)
	}
	return err
}

func (l *link) clear(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	conn, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.LogOutput, config.Logger = nil, silent{}
	session, err := yamux.Client(conn, config)
	if err != nil {
		return err
	}
	defer session.Close()
	stream, err := session.OpenStream()
	if err != nil {
		return err
	}
	_ = stream.SetDeadline(time.Now().Add(stepTime))
	if err := end(wire.New(stream, wire.MaxFromHost), true); err != nil {
		if said := conn.said(); said != "" {
			err = errors.New(said)
		}
		return fmt.Errorf("end what is there: %w", err)
	}
	return nil
}
