// Package notice carries notices to a URL, signed by the Standard Webhooks
// scheme (standardwebhooks.com, spec 1.0.0), or to a command's stdin.
package notice

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/notice"
)

// Options of New.
type Options struct {
	Supervisor *cell.Supervisor    // owns the commands; nil starts none
	Dir        string              // absolute; where commands run
	Getenv     func(string) string // finds the secrets
	Patience   time.Duration       // for one try, the whole of it; 0 means 10 s
	Now        func() time.Time    // nil means the system's
}

// Sender sends one message after the other wherever its notice says. It is
// safe for concurrent use.
type Sender struct {
	opt    Options
	client *http.Client
}

var _ notice.Sender = (*Sender)(nil)

// New makes a sender; Close it when done.
func New(opt Options) *Sender {
	if opt.Patience == 0 {
		opt.Patience = 10 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Sender{opt: opt, client: newClient()}
}

// Close lets go of idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *Sender) Send(ctx context.Context, n notice.Notice, m notice.Message) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.Patience, fmt.Errorf("no answer within %s", s.opt.Patience))
	defer cancel()
	if n.URL != "" {
		return s.post(ctx, n, m)
	}
	return s.run(ctx, n, m)
}
