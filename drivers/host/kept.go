package host

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
)

// collect takes over what so many runs of a former engine have left there.
func (l *link) collect(ctx context.Context, c *wire.Conn, n int) error {
	for n > 0 {
		var f wire.Control
		if err := c.ReadAny(&f); err != nil {
			return err
		}
		var answer wire.Control
		switch {
		case f.Beat > 0:
			answer = l.pool.answer(f.Beat)
		case f.Kept != nil:
			n--
			if err := f.Kept.Check(); err != nil {
				return fmt.Errorf("%w: %w", wire.ErrFrame, err)
			}
			if l.pool.opt.Kept != nil && l.pool.opt.Kept(ctx, l.at.tenant, l.at.name, l.kept(f.Kept)) != nil {
				continue
			}
			answer.Took = f.Kept.Run
		default:
			continue
		}
		if err := c.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// kept is what the keeper has of a run, as cells of this machine have it.
func (l *link) kept(k *wire.Kept) cell.Kept {
	ago := func(ms int64) time.Time { return time.Now().Add(-time.Duration(ms) * time.Millisecond) }
	all := cell.Kept{
		Name: k.Run[:min(len(k.Run), 12)], Run: "host " + l.at.name + "/agent:" + k.Agent,
		Whose: cell.Whose{Tenant: l.at.tenant, Agent: k.Agent}, Lost: ago(k.LostMS), Ended: ago(k.EndedMS), How: cell.EndedThere,
		Stdout: k.Stdout, Stderr: k.Stderr, Cut: k.Cut,
	}
	for _, task := range k.Tasks {
		all.Tasks = append(all.Tasks, desk.Text(task, wire.MaxID))
	}
	if k.Itself {
		all.How, all.Code, all.Signal = cell.EndedItself, k.Code, syscall.Signal(k.Signal)
	}
	return all
}
