package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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
