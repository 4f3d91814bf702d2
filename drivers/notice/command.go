// Package notice carries notices to a URL, signed by the Standard Webhooks
// scheme (standardwebhooks.com, spec 1.0.0), or to a command's stdin.
package notice

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/notice"
)

const maxComplaint = 300 // bytes of stderr that an error repeats

// run gives a message to a command: the JSON and a newline on stdin, its id in
// NOTICE_ID. Exit 0 says that it arrived.
func (s *Sender) run(ctx context.Context, n notice.Notice, m notice.Message) error {
	if s.opt.Supervisor == nil {
		return errors.New("no command can be started here")
	}
	complaint := ""
	lines := &pipe.Splitter{Max: maxComplaint, Emit: func(line []byte, _ int) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			complaint = ": " + pipe.Text(line)
		}
	}}
	exit, err := s.opt.Supervisor.Run(ctx, cell.Spec{
		Run: "notice-" + n.Name, Argv: n.Command, Dir: s.opt.Dir, Env: map[string]string{"NOTICE_ID": m.ID},
		Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Open},
	}, bytes.NewReader(append(bytes.Clone(m.Body), '\n')), nil, lines)
	if err != nil {
		return err
	}
	lines.Close()
	if exit.Code != 0 {
		return fmt.Errorf("the command %s%s", exit.Describe(), complaint)
	}
	return nil
}

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
	opt.Patience = cmp.Or(opt.Patience, 10*time.Second)
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
