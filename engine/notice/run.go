package notice

import (
	"context"
	"errors"
)

type place struct{ tenant, name string }

// Run tells what there is to tell until ctx ends.
func (s *Notices) Run(ctx context.Context) error {
	if s.opt.Sender == nil {
		<-ctx.Done()
		return nil
	}
	return s.crew.Run(ctx)
}

// tell runs one notice's courier, which begins with what is on disk.
func (s *Notices) tell(ctx context.Context, n *Notice) error {
	if err := s.courier(*n).run(ctx); !errors.Is(err, errOther) {
		return err
	}
	return nil
}
